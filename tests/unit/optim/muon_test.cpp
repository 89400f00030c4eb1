// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Muon over 50 steps against vectors in float64 (tests/vectors/make_muon_vectors.py).
#include "matrix_rule_testing.h"
#include "support/test_folders.h"
#include "train/matrix_sharing.h"

namespace lockstep {
namespace {

const Hdf5Vectors& vectors() {
  static const Hdf5Vectors opened(test_vectors("muon.h5"));
  return opened;
}

MatrixNet net_of(const std::string& yaml, int threads = 1) { return {vectors(), yaml, threads}; }

TEST(Muon, HasTheValuesOfItsFormula) { expect_vectors(vectors(), 1e-5); }

TEST(Muon, HasTheSameBitsOnAnyNumberOfThreads) {
  MatrixNet one = net_of("muon: {learning_rate: 0.02}"), three = net_of("muon: {learning_rate: 0.02}", 3);
  for (int step = 0; step < 5; ++step) one.step(step), three.step(step);
  EXPECT_EQ(one.values(), three.values());
}

TEST(Muon, TakesMatricesAndLeavesTheRestToAdamW) {
  EXPECT_EQ(net_of("muon").num_matrices(), 2);
  EXPECT_EQ(net_of("muon: {adamw_for: [\"conv*\"]}").num_matrices(), 2);  // the table is one then
  EXPECT_EQ(net_of("muon: {adamw_for: [\"*\"]}").num_matrices(), 0);
}

TEST(Muon, ANaNInTheGradientReachesTheMatrix) {
  MatrixNet net = net_of("muon: {learning_rate: 0.02}");
  net.step(0);
  std::vector<float> values = net.values();
  EXPECT_TRUE(std::ranges::all_of(values, [](float v) { return std::isfinite(v); }));
  net.set_gradient(std::nanf(""));
  net.step(1);
  values = net.values();
  EXPECT_TRUE(std::isnan(values.front()));
}

TEST(MatrixSharing, GivesTheLargestWorkFirstToTheLeastLoaded) {
  EXPECT_EQ(share_evenly({1, 5, 3, 2, 2}, 2), (std::vector<int>{1, 0, 1, 1, 0}));
  EXPECT_EQ(share_evenly({2, 2}, 3), (std::vector<int>{0, 1}));
  EXPECT_TRUE(share_evenly({}, 3).empty());
}

}  // namespace
}  // namespace lockstep
