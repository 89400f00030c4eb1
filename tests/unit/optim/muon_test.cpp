// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Muon over 50 steps against vectors in float64 (tests/vectors/make_muon_vectors.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "driver/config/yaml_node.h"
#include "optim/optimizer.h"
#include "support/hdf5_vectors.h"
#include "train/matrix_sharing.h"

namespace lockstep {
namespace {

struct Declared {
  const char* name;
  Shape shape;
};
const Declared kDeclared[] = {{"conv/kernel", {3, 3, 4, 6}},
                              {"dense/kernel", {9, 31}},
                              {"words/embeddings", {6, 4}},
                              {"dense/bias", {31}}};

const Hdf5Vectors& vectors() {
  static const Hdf5Vectors opened(LOCKSTEP_VECTORS "/muon.h5");
  return opened;
}

/// The variables of the vectors and an optimizer, on `threads` threads.
class Net {
 public:
  Net(const std::string& yaml, int threads)
      : pool_(threads), optimizer_(optimizer_options(parse_yaml(yaml, "test")).make()) {
    for (const Declared& d : kDeclared) {
      variables_.declare(d.name, d.shape, make_initializer("zeros"));
      gradients_.push_back(vectors().floats(std::string("gradients/") + d.name));
    }
    variables_.commit(cpu_device());
    variables_.initialize(1);
    for (const Declared& d : kDeclared)
      std::ranges::copy(vectors().floats(std::string("start/") + d.name),
                        variables_.value(variables_.find(d.name)));
    for (int lane = 0; lane < threads; ++lane) lanes_.push_back({.index = lane});
    optimizer_->create_slots(cpu_device(), variables_);
    work_ = optimizer_->matrix_work(context());
    flat_.resize(static_cast<std::size_t>(variables_.trainable_elements()));
  }
  const MatrixWork& work() const { return *work_; }
  void break_gradient() { gradients_[0].assign(gradients_[0].size(), std::nanf("")); }
  void step(std::int64_t step) {
    for (std::size_t i = 0; i < std::size(kDeclared); ++i) {
      const Variable& variable = variables_[variables_.find(kDeclared[i].name)];
      std::copy_n(gradients_[i].begin() + step * variable.shape.num_elements(), variable.shape.num_elements(),
                  flat_.begin() + variable.offset);
    }
    optimizer_->begin_step(step);
    optimizer_->measure(context(), flat_.data());
    for (std::size_t i = 0; i < work_->matrices().size(); ++i) work_->compute(lanes_[i % lanes_.size()], i);
    pool_.run([&](int t) {
      const Range part = part_of(variables_.trainable_elements(), t, pool_.size(), 32);
      optimizer_->update(cpu_kernels(), lanes_[static_cast<std::size_t>(t)], variables_,
                         flat_.data() + part.first, part);
    });
  }
  std::vector<float> values() const {
    std::vector<float> all;
    for (const Declared& d : kDeclared) {
      const Tensor tensor = variables_.tensor(variables_.find(d.name));
      all.insert(all.end(), tensor.f32(), tensor.f32() + tensor.shape().num_elements());
    }
    return all;
  }

 private:
  UpdateContext context() { return {variables_, cpu_kernels(), cpu_device(), pool_, lanes_}; }

  ThreadPool pool_;
  std::unique_ptr<Optimizer> optimizer_;
  VariableStore variables_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<float>> gradients_;
  std::vector<float> flat_;
  MatrixWork* work_ = nullptr;
};

TEST(Muon, HasTheValuesOfItsFormula) {
  const std::vector<float> expected = vectors().floats("expected");
  const std::vector<std::int32_t> kept = vectors().integers("kept_steps");
  std::size_t at = 0;
  for (const std::string& yaml : vectors().lines("cases")) {
    Net net(yaml + "}", 1);
    for (std::int32_t step = 1; step <= 50; ++step) {
      net.step(step - 1);
      if (std::ranges::find(kept, step) == kept.end()) continue;
      const std::vector<float> values = net.values();
      double largest = 0, difference = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double wanted = expected[at + i], apart = std::fabs(static_cast<double>(values[i]) - wanted);
        largest = std::fmax(largest, std::fabs(wanted));
        difference = apart <= difference ? difference : apart;  // NaN stays
      }
      EXPECT_TRUE(difference <= 1e-5 * largest)
          << yaml << ", step " << step << ": " << difference << " of " << largest;
      at += values.size();
    }
  }
  EXPECT_EQ(at, expected.size());
}

TEST(Muon, HasTheSameBitsOnAnyNumberOfThreads) {
  Net one("muon: {learning_rate: 0.02}", 1), three("muon: {learning_rate: 0.02}", 3);
  for (int step = 0; step < 5; ++step) one.step(step), three.step(step);
  EXPECT_EQ(one.values(), three.values());
}

TEST(Muon, TakesMatricesAndLeavesTheRestToAdamW) {
  EXPECT_EQ(Net("muon", 1).work().matrices().size(), 2);
  EXPECT_EQ(Net("muon: {adamw_for: [\"conv*\"]}", 1).work().matrices().size(), 2);  // the table is one then
  EXPECT_EQ(Net("muon: {adamw_for: [\"*\"]}", 1).work().matrices().size(), 0);
}

TEST(Muon, ANaNInTheGradientReachesTheMatrix) {
  Net net("muon: {learning_rate: 0.02}", 1);
  net.step(0);
  std::vector<float> values = net.values();
  EXPECT_TRUE(std::ranges::all_of(values, [](float v) { return std::isfinite(v); }));
  net.break_gradient();
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
