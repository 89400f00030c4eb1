// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts calls of operator new in a test program that has counted_allocations.cpp. Allocations inside
// oneDNN's calls (kernels/primitives.h: about seven small ones each) are distinguished by their stack.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/function_ref.h"

namespace lockstep {

struct Counts {
  long own, library, library_bytes;
};
/// Of all threads, while the function runs.
Counts counted(FunctionRef<void()> function);
/// The stack of the first own allocation: module and offset of each frame, for addr2line.
std::string first_own();
/// Loads what counting needs.
void warm_counting();

class Warm : public testing::Test {
 protected:
  static void SetUpTestSuite() { warm_counting(); }
};

}  // namespace lockstep
