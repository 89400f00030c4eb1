// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep {
namespace {

TEST(Data, ConvertsOnlyToItsOwnType) {
  float number = 1;
  BFloat16 half{};
  const Data values(&number), halves(&half);
  float* address = values;
  EXPECT_EQ(address, &number);
  EXPECT_EQ(halves.as<BFloat16>(), &half);
  EXPECT_THROW((void)static_cast<float*>(halves), Error);
  const ConstData read = halves;
  EXPECT_THROW((void)read.as<Float16>(), Error);
  EXPECT_EQ(static_cast<const float*>(ConstData(nullptr, DType::bf16)), nullptr);
}

}  // namespace
}  // namespace lockstep
