// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A net of variables with the gradients of 50 steps (tests/vectors), for rules that compute whole matrices.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "config/yaml_node.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "optim/matrix_work.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/update_context.h"
#include "support/hdf5_vectors.h"

namespace lockstep {
namespace {

struct Declared {
  const char* name;
  Shape shape;
};
inline const Declared kDeclared[] = {{"conv/kernel", {3, 3, 4, 6}},
                                     {"dense/kernel", {9, 31}},
                                     {"words/embeddings", {6, 4}},
                                     {"dense/bias", {31}}};

/// The variables of the vectors and an optimizer, on `threads` threads.
class MatrixNet {
 public:
  MatrixNet(const Hdf5Vectors& vectors, const std::string& yaml, int threads)
      : pool_(threads), optimizer_(optimizer_options(parse_yaml(yaml, "test")).make()) {
    for (const Declared& d : kDeclared) {
      variables_.declare(d.name, d.shape, make_initializer("zeros"));
      gradients_.push_back(vectors.floats(std::string("gradients/") + d.name));
    }
    variables_.commit(cpu_device());
    variables_.initialize(1);
    for (const Declared& d : kDeclared)
      std::ranges::copy(vectors.floats(std::string("start/") + d.name),
                        variables_.value(variables_.find(d.name)));
    for (int lane = 0; lane < threads; ++lane) lanes_.push_back({.index = lane});
    optimizer_->create_slots(cpu_device(), variables_);
    for (MatrixWork* const work : optimizer_->matrix_work(context())) {
      std::vector<std::size_t> all(work->matrices().size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      work->own(all);
      work_ = work;
    }
    flat_.resize(static_cast<std::size_t>(variables_.trainable_elements()));
  }
  MatrixWork& work() const { return *work_; }
  std::size_t num_matrices() const { return work_ != nullptr ? work_->matrices().size() : 0; }
  Optimizer& optimizer() const { return *optimizer_; }
  /// From now on all gradients of the convolution are `value`.
  void set_gradient(float value) { gradients_[0].assign(gradients_[0].size(), value); }
  void step(std::int64_t step) {
    for (std::size_t i = 0; i < std::size(kDeclared); ++i) {
      const Variable& variable = variables_[variables_.find(kDeclared[i].name)];
      std::copy_n(gradients_[i].begin() + step * variable.shape.num_elements(), variable.shape.num_elements(),
                  flat_.begin() + variable.offset);
    }
    optimizer_->begin_step(step);
    optimizer_->measure(context(), flat_.data());
    for (std::size_t i = 0; i < work_->matrices().size(); ++i) work_->compute(lanes_[i % lanes_.size()], i);
    for (std::size_t i = 0; i < work_->matrices().size(); ++i) work_->finish(lanes_[i % lanes_.size()], i);
    pool_.run([&](int t) {
      const Range part = part_of(variables_.trainable_elements(), t, pool_.size(), 32);
      optimizer_->update(cpu_kernels(), lanes_[static_cast<std::size_t>(t)], variables_,
                         flat_.data() + part.first, part);
    });
  }
  /// The state of a run after `steps` steps, but that of its matrix work.
  void copy_slots_and_values(const MatrixNet& from, std::int64_t steps) {
    const auto count = static_cast<std::size_t>(variables_.trainable_elements());
    for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i)
      std::copy_n(from.optimizer_->slots().values(i), count, optimizer_->slots().values(i));
    std::copy_n(from.variables_.trainable_address(), count, variables_.trainable_address());
    for (const Variable& variable : variables_.variables()) {
      const double updates[] = {static_cast<double>(from.optimizer_->updates(variable))};
      optimizer_->restore_updates(steps, std::vector<Optimizer::RestoredUpdates>{{&variable, updates}});
    }
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
  MatrixWork* work_ = nullptr;  ///< null: no variable is a matrix for the rule
};

/// All cases of the vectors, after the steps that they have. Relative to the largest number.
inline void expect_vectors(const Hdf5Vectors& vectors, double tolerance) {
  const std::vector<float> expected = vectors.floats("expected");
  const std::vector<std::int32_t> kept = vectors.integers("kept_steps");
  std::size_t at = 0;
  for (const std::string& yaml : vectors.lines("cases")) {
    MatrixNet net(vectors, yaml + "}", 1);
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
      EXPECT_TRUE(difference <= tolerance * largest)
          << yaml << ", step " << step << ": " << difference << " of " << largest;
      at += values.size();
    }
  }
  EXPECT_EQ(at, expected.size());
}

}  // namespace
}  // namespace lockstep
