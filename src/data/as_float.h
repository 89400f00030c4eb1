// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A stored number of any type as float32.
#pragma once

#include "core/half.h"

namespace lockstep {

template <typename T>
float as_float(T value) {
  return static_cast<float>(value);
}
inline float as_float(Float16 value) { return to_float(value); }
inline float as_float(BFloat16 value) { return to_float(value); }

}  // namespace lockstep
