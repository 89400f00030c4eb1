// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "unit/kernels/kernel_testing.h"
#include "unit/kernels/layout_testing.h"

namespace lockstep {
namespace {

TEST(Layout, CopiesWhatTheStridesSelectAndNothingElse) {
  for (const Level& level : levels())
    for (const NamedCopy& test : copies()) {
      const Floats from(random_values(test.from_size, 1));
      const Floats to(Values(static_cast<std::size_t>(test.to_size), -7.0));
      Values expected = to.values();
      copy_by_definition(test.copy, test.samples, from.values(), expected);
      level.layout.copy(TestLane(), test.copy, test.samples, from.data(), to.data());
      EXPECT_EQ(to.values(), expected) << level.name << " " << test.name;
    }
}

/// 16-bit numbers of all kinds of bit patterns, including NaN.
template <typename T>
std::vector<T> patterns(std::int64_t count) {
  std::vector<T> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back({static_cast<std::uint16_t>(i * 40503 + 0x7F81)});
  return list;
}
template <typename T>
Values bits_of(const std::vector<T>& numbers) {
  Values bits;
  for (const T number : numbers) bits.push_back(number.bits);
  return bits;
}

template <typename T>
void check_halves(const Level& level, const NamedCopy& test) {
  const std::vector<T> from = patterns<T>(test.from_size);
  std::vector<T> to(static_cast<std::size_t>(test.to_size), T{0x1234});
  Values expected = bits_of(to);
  copy_by_definition(test.copy, test.samples, bits_of(from), expected);
  level.layout.copy(TestLane(), test.copy, test.samples, from.data(), to.data());
  EXPECT_EQ(bits_of(to), expected) << level.name << " " << test.name;
}

TEST(Layout, CopiesAllBitsOf16BitTypes) {
  for (const Level& level : levels())
    for (const NamedCopy& test : copies()) {
      check_halves<BFloat16>(level, test);
      check_halves<Float16>(level, test);
    }
}

TEST(Layout, DifferentTypesAreABug) {
  const NamedCopy test = copies().front();
  const Floats from(test.from_size);
  std::vector<BFloat16> to(static_cast<std::size_t>(test.to_size));
  for (const Level& level : levels())
    EXPECT_THROW(level.layout.copy(TestLane(), test.copy, test.samples, from.data(), to.data()), Error);
}

TEST(Layout, ReversedUndoesTheCopy) {
  for (const NamedCopy& test : copies()) {
    const Values from = random_values(test.from_size, 1);
    Values there(static_cast<std::size_t>(test.to_size)), back(from.size(), -7.0);
    copy_by_definition(test.copy, test.samples, from, there);
    copy_by_definition(test.copy.reversed(), test.samples, there, back);
    std::size_t brought = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      EXPECT_TRUE(back[i] == from[i] || back[i] == -7.0) << test.name;
      brought += back[i] == from[i] ? 1U : 0U;
    }
    std::int64_t count = test.samples;
    for (int axis = 1; axis < test.copy.rank; ++axis) count *= test.copy.extents[axis];
    EXPECT_EQ(brought, static_cast<std::size_t>(count)) << test.name;
  }
}

TEST(Layout, AdjacentAxesAreMergedExceptTheSampleAxis) {
  StridedCopy copy;
  copy.add_axis(1, 24, 24);
  copy.add_axis(2, 12, 12);
  copy.add_axis(1, 5, 99);
  copy.add_axis(3, 4, 4);
  copy.add_axis(4, 1, 1);
  EXPECT_EQ(copy.rank, 2);
  EXPECT_EQ(copy.extents[1], 24);
  EXPECT_EQ(copy.from_strides[1], 1);
}

}  // namespace
}  // namespace lockstep
