// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers: 64-bit integers as smaller ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/dtype.h"

namespace lockstep {

/// Writes the values of the feature `name` as `type`, which is an integer type. Throws Error(data) without a
/// place if one does not fit.
void narrow(std::span<const std::int64_t> from, DType type, void* to, const std::string& name);

}  // namespace lockstep
