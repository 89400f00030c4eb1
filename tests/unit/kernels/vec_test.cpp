// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/vec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

template <typename T>
class HalfTypes : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(HalfTypes, Types);

TYPED_TEST(HalfTypes, RegistersConvertLikeScalars) {
  std::vector<float> values = {
      0.0F,        -0.0F,    1.0F,     -1.5F,         65519.0F,
      65520.0F,    0x1p-25F, 0x1p-24F, 0x1.8p-25F,    0x1p-130F,
      3.14159265F, 1e30F,    -1e-30F,  std::nanf(""), std::numeric_limits<float>::infinity()};
  for (std::uint32_t bits = 0; bits < 0xFFFF0000U; bits += 0x000FF731U)
    values.push_back(std::bit_cast<float>(bits));
  values.resize(values.size() / kLanes * kLanes);
  std::vector<TypeParam> stored(values.size());
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    Lanes<Vec>::store(stored.data() + i, Lanes<Vec>::load(values.data() + i));
    float back[kLanes];
    Lanes<Vec>::store(back, Lanes<Vec>::load(stored.data() + i));
    for (std::size_t k = 0; k < kLanes; ++k) {
      EXPECT_EQ(stored[i + k].bits, from_float<TypeParam>(values[i + k]).bits) << values[i + k];
      EXPECT_EQ(std::bit_cast<std::uint32_t>(back[k]), std::bit_cast<std::uint32_t>(to_float(stored[i + k])));
    }
  }
}

}  // namespace
}  // namespace lockstep
