// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "recurrent_alone.h"

#include <algorithm>

#include "bench_memory.h"
#include "core/range.h"
#include "kernels/kernel_table.h"

namespace lockstep {

namespace {

constexpr std::int64_t kSteps = 50, kUnits = 128, kWidth = 4 * kUnits;

float* data(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

}  // namespace

/// One thread's microshard. Both layers have the same shapes: input and units are 128.
class RecurrentAlone::Chain {
 public:
  Chain(std::int64_t n, bool input_gradient, int lanes)
      : n_(n),
        input_gradient_(input_gradient),
        all_(cpu_kernels().make.dense(
            {.n = n * kSteps, .in = kUnits, .out = kWidth, .bias = true, .packed = true}, lanes)),
        one_(cpu_kernels().make.dense({.n = n, .in = kUnits, .out = kWidth, .packed = true}, lanes)),
        gradient_(cpu_kernels().make.dense({.n = n * (kSteps - 1), .in = kUnits, .out = kWidth}, lanes)),
        weights_(bench_floats(kUnits * kWidth)),
        bias_(bench_floats(kWidth)),
        dweights_(bench_floats(kUnits * kWidth)),
        sum_(bench_floats(n * kWidth)),
        all_packed_(cpu_device(), all_->packed_bytes()),
        one_packed_(cpu_device(), one_->packed_bytes()) {
    for (int i = 0; i < 3; ++i) states_.push_back(bench_floats(n * kSteps * kUnits));
    for (int i = 0; i < 2; ++i) gates_.push_back(bench_floats(n * kSteps * kWidth));
  }
  std::size_t scratch_bytes() const {
    return std::max({all_->scratch_bytes(), one_->scratch_bytes(), gradient_->scratch_bytes()});
  }
  void pack(const Lane& lane) {
    all_->pack(lane, data(weights_), all_packed_.data());
    one_->pack(lane, data(weights_), one_packed_.data());
  }
  void run(const Lane& lane) {
    const float *w = data(weights_), *bias = data(bias_);
    for (std::size_t l = 0; l < 2; ++l) {
      all_->forward(lane, data(states_[l]), w, all_packed_.data(), bias, data(gates_[l]));
      for (std::int64_t t = 1; t < kSteps; ++t)
        one_->forward(lane, data(states_[l + 1]) + (t - 1) * n_ * kUnits, w, one_packed_.data(), nullptr,
                      data(sum_));
    }
    for (std::size_t l = 2; l-- > 0;) {
      for (std::int64_t t = kSteps - 1; t > 0; --t)
        one_->backward_data(lane, data(gates_[l]) + t * n_ * kWidth, w, one_packed_.data(), data(sum_));
      all_->backward_weights(lane, data(states_[l]), data(gates_[l]), data(dweights_));
      if (l > 0 || input_gradient_)
        all_->backward_data(lane, data(gates_[l]), w, all_packed_.data(), data(states_[l]));
      gradient_->backward_weights(lane, data(states_[l + 1]), data(gates_[l]) + n_ * kWidth, data(dweights_));
    }
  }

 private:
  std::int64_t n_;
  bool input_gradient_;
  std::unique_ptr<LinearPrimitive> all_, one_, gradient_;
  Buffer weights_, bias_, dweights_, sum_, all_packed_, one_packed_;
  std::vector<Buffer> states_, gates_;
};

RecurrentAlone::RecurrentAlone(Workers& workers, std::int64_t n, std::int64_t microshards,
                               bool input_gradient)
    : workers_(workers), microshards_(microshards) {
  const int threads = workers.pool().size();
  for (int t = 0; t < threads; ++t) chains_.push_back(std::make_unique<Chain>(n, input_gradient, threads));
  workers.grow_scratch(chains_.front()->scratch_bytes());
  workers.pool().run([&](int t) {
    chains_[static_cast<std::size_t>(t)]->pack(workers.lanes()[static_cast<std::size_t>(t)]);
  });
  run();  // warm-up
}

RecurrentAlone::~RecurrentAlone() = default;

void RecurrentAlone::run() {
  workers_.pool().run([&](int t) {
    const Range part = part_of(microshards_, t, workers_.pool().size());
    for (std::int64_t i = part.first; i < part.last; ++i)
      chains_[static_cast<std::size_t>(t)]->run(workers_.lanes()[static_cast<std::size_t>(t)]);
  });
}

}  // namespace lockstep
