// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// GPUs, for whoever builds a program with them. No CUDA header is needed to include this.
#pragma once

namespace lockstep {

class Backend;

/// `device: cuda`. On a host without a driver it has no devices and says so; the program goes on.
Backend& cuda_backend();

}  // namespace lockstep
