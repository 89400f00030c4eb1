// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Normalisation within a sample with 16-bit activations. Stored results are the float32 kernels' results on
// the same numbers, rounded once; statistics and parameter gradients have the same bits.
#include <gtest/gtest.h>

#include "unit/kernels/group_norm_testing.h"
#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

constexpr double kEpsilon = 1e-3;

template <typename T>
class GroupNormHalf : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(GroupNormHalf, Types);

template <typename T>
void check_group_norm(const Level& level, const GroupNormShape& s, int shift) {
  const std::string what = level.name + " " + to_string(s) + " shift " + std::to_string(shift);
  const std::int64_t count = s.samples * s.positions * s.channels(), groups = 2 * s.samples * s.groups;
  const Stored<T> x(random_values(count, 1, -1.0, 3.0), shift), dy(random_values(count, 2), shift),
      y(count, shift), dx(count, shift);
  const Floats gamma(random_values(s.channels(), 3), shift), beta(random_values(s.channels(), 4), shift),
      statistics(groups), dgamma(s.channels()), dbeta(s.channels());
  const Floats full_y(count), full_dx(count), full_statistics(groups), full_dgamma(s.channels()),
      full_dbeta(s.channels());
  const TestLane lane(level.group_norm.scratch_bytes(s));
  level.group_norm.forward(lane, s, x.data(), kEpsilon, gamma.data(), beta.data(), statistics.data(),
                           y.data());
  level.group_norm.forward(lane, s, x.widened().data(), kEpsilon, gamma.data(), beta.data(),
                           full_statistics.data(), full_y.data());
  level.group_norm.backward(lane, s, x.data(), dy.data(), gamma.data(), statistics.data(), dx.data(),
                            dgamma.data(), dbeta.data());
  level.group_norm.backward(lane, s, x.widened().data(), dy.widened().data(), gamma.data(),
                            full_statistics.data(), full_dx.data(), full_dgamma.data(), full_dbeta.data());
  expect_rounded(y, full_y, what + " y");
  expect_rounded(dx, full_dx, what + " dx");
  EXPECT_TRUE(same_bits(statistics, full_statistics)) << what;
  EXPECT_TRUE(same_bits(dgamma, full_dgamma)) << what;
  EXPECT_TRUE(same_bits(dbeta, full_dbeta)) << what;
}

TYPED_TEST(GroupNormHalf, IsFloat32RoundedOnce) {
  for (const Level& level : levels())
    for (const GroupNormShape& s : all_norm_shapes())
      for (const int shift : {0, 1}) check_group_norm<TypeParam>(level, s, shift);
}

TYPED_TEST(GroupNormHalf, L2NormalizeIsFloat32RoundedOnce) {
  for (const Level& level : levels())
    for (const std::int64_t rows : {0, 1, 7})
      for (const std::int64_t channels : {1, 3, 17, 64, 1500}) {
        const std::string what = level.name + " " + std::to_string(rows) + "x" + std::to_string(channels);
        const std::int64_t count = rows * channels;
        const Stored<TypeParam> x(random_values(count, 1), 1), dy(random_values(count, 2), 1), y(count, 1),
            dx(count, 1);
        const Floats kept(2 * rows), full_kept(2 * rows), full_y(count), full_dx(count);
        level.group_norm.l2_normalize(TestLane(), rows, channels, x.data(), 1e-3, kept.data(), y.data());
        level.group_norm.l2_normalize(TestLane(), rows, channels, x.widened().data(), 1e-3, full_kept.data(),
                                      full_y.data());
        level.group_norm.l2_normalize_backward(TestLane(), rows, channels, y.data(), dy.data(), kept.data(),
                                               dx.data());
        level.group_norm.l2_normalize_backward(TestLane(), rows, channels, y.widened().data(),
                                               dy.widened().data(), kept.data(), full_dx.data());
        expect_rounded(y, full_y, what + " y");
        expect_rounded(dx, full_dx, what + " dx");
        EXPECT_TRUE(same_bits(kept, full_kept)) << what;
      }
}

}  // namespace
}  // namespace lockstep
