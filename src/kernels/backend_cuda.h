// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA backend. This header needs no CUDA header.
#pragma once

namespace lockstep {

class Backend;

/// The backend for `device: cuda`. On a host without a driver it reports no devices and the reason; the
/// program continues.
Backend& cuda_backend();

}  // namespace lockstep
