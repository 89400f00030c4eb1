// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: the first bytes of NumPy's .npy, version 1.0
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html), of an array in C order.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/dtype.h"

namespace lockstep {

/// Ends at a multiple of 64 bytes. `type` is not bf16.
std::string npy_header(DType type, std::span<const std::int64_t> extents);

}  // namespace lockstep
