// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shampoo over 50 steps against vectors in float64 (tests/vectors/make_shampoo_vectors.py).
#include "matrix_rule_testing.h"
#include "optim/matrix_work.h"
#include "optim/optimizer_options.h"
#include "support/test_folders.h"

namespace lockstep {
namespace {

const Hdf5Vectors& vectors() {
  static const Hdf5Vectors opened(test_vectors("shampoo.h5"));
  return opened;
}

MatrixNet net_of(const std::string& yaml, int threads = 1) { return {vectors(), yaml, threads}; }

constexpr const char* kBlocks = "shampoo: {learning_rate: 0.02, block_size: 8, root_every: 2}";

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

TEST(Shampoo, HasTheValuesOfItsFormula) { expect_vectors(vectors(), 1e-4); }

TEST(Shampoo, HasTheSameBitsOnAnyNumberOfThreads) {
  MatrixNet one = net_of(kBlocks), three = net_of(kBlocks, 3);
  for (int step = 0; step < 5; ++step) one.step(step), three.step(step);
  EXPECT_EQ(one.values(), three.values());
}

/// dense is 9 x 31, conv 36 x 6.
TEST(Shampoo, CutsMatricesIntoEvenBlocks) {
  EXPECT_EQ(net_of("shampoo").work().matrices().size(), 2U);
  const MatrixNet net = net_of(kBlocks);
  ASSERT_EQ(net.work().matrices().size(), 5U + 2 * 4);
  for (std::size_t i = 8; i < 13; ++i) {
    const std::int64_t rows = net.work().matrices()[i].place.size() / 6;
    EXPECT_TRUE(rows == 7 || rows == 8) << i;
  }
  const std::vector<MatrixWork::StateTensor>& state = net.work().state();
  ASSERT_EQ(state.size(), 8U);
  EXPECT_EQ(state[0].slot, "left_statistics");
  EXPECT_EQ(state[0].variable->name, "dense/kernel");
  EXPECT_EQ(state[0].matrices.size(), 8);
  EXPECT_EQ(state[0].width, 25);           // 9 rows are 4 and 5
  EXPECT_EQ(state[1].width, 64);           // 31 columns are 7, 8, 8 and 8
  EXPECT_EQ(state[4].matrices.size(), 5);  // of conv
  EXPECT_EQ(state[4].width, 64);
  EXPECT_EQ(state[5].width, 36);
}

/// The state that is written and read is all there is, between two computations of roots too.
TEST(Shampoo, ContinuesFromItsState) {
  MatrixNet whole = net_of(kBlocks), again = net_of(kBlocks);
  for (int step = 0; step < 7; ++step) whole.step(step);
  const auto copy = [](const MatrixNet& from, MatrixNet& to) {
    for (std::size_t i = 0; i < from.work().state().size(); ++i) {
      const MatrixWork::StateTensor& tensor = from.work().state()[i];
      for (std::int64_t m = tensor.matrices.first; m < tensor.matrices.last; ++m) {
        std::vector<float> row(static_cast<std::size_t>(tensor.width));
        from.work().read_state(i, static_cast<std::size_t>(m), row.data());
        to.work().write_state(i, static_cast<std::size_t>(m), row.data());
      }
    }
    to.copy_slots_and_values(from, 7);
  };
  copy(whole, again);
  for (int step = 7; step < 12; ++step) whole.step(step), again.step(step);
  EXPECT_EQ(whole.values(), again.values());
  again.work().reset();
  whole.step(12), again.step(12);
  EXPECT_NE(whole.values(), again.values());
}

TEST(Shampoo, ANaNInTheGradientReachesTheMatrix) {
  MatrixNet net = net_of(kBlocks);
  for (int step = 0; step < 3; ++step) net.step(step);
  EXPECT_TRUE(all_finite(net.values()));
  net.set_gradient(std::nanf(""));
  net.step(3);
  EXPECT_TRUE(std::isnan(net.values().front()));
}

/// The squares of a gradient overflow, not the gradient: the old roots stay, and statistics begin anew.
TEST(Shampoo, StatisticsThatOverflowBeginAnew) {
  MatrixNet net = net_of("shampoo: {learning_rate: 0.02, root_every: 1, grafting: sgd, beta1: 0}");
  net.step(0);
  const auto root = [&] {
    std::vector<float> values(static_cast<std::size_t>(net.work().state()[6].width));
    net.work().read_state(6, 1, values.data());  // left_root of conv
    return values;
  };
  const std::vector<float> before = root();
  net.set_gradient(1e25F);
  net.step(1);
  EXPECT_EQ(root(), before);
  net.set_gradient(0.5F);
  net.step(2);
  EXPECT_NE(root(), before);
  EXPECT_TRUE(all_finite(root()));
  EXPECT_TRUE(all_finite(net.values()));
}

/// A part of the net without any gradient, such as units that never fire, stays where it is.
TEST(Shampoo, GradientsOfZeroMoveNothing) {
  MatrixNet net = net_of("shampoo: {learning_rate: 0.02, root_every: 1, weight_decay: 0}");
  net.set_gradient(0);
  const float before = net.values().front();
  for (int step = 0; step < 3; ++step) net.step(step);
  EXPECT_EQ(net.values().front(), before);
  EXPECT_TRUE(all_finite(net.values()));
}

TEST(Shampoo, RefusesWhatItCannotUse) {
  for (const char* options :
       {"block_size: 0", "block_size: -4", "block_size: 9000", "root_every: 0", "root_every: 2.5",
        "start_step: -1", "statistics_decay: 0", "statistics_decay: 1.1", "exponent: 0", "root_epsilon: 0",
        "grafting: adamw", "beta1: 1", "epsilon: -1", "momentum: 0.9", "learning_rate: -1",
        "weight_decay: -0.1", "iterations: 5"})
    EXPECT_THROW(optimizer_options(parse_yaml(std::string("shampoo: {") + options + "}", "test")), Error)
        << options;
}

}  // namespace
}  // namespace lockstep
