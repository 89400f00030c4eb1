// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Losses other than plain softmax: equal bits at every instruction-set level. ../model/losses_test.cpp checks
// their values.
#include "kernels/loss_terms.h"

#include <gtest/gtest.h>

#include "unit/kernels/kernel_testing.h"

namespace lockstep {
namespace {

const LossTermKernels& terms_of(const Level& level) {
#if defined(__x86_64__)
  if (level.name == "avx2") return avx2::loss_term_kernels();
  if (level.name == "avx512") return avx512::loss_term_kernels();
#endif
  return baseline::loss_term_kernels();
}

struct Results {
  std::vector<double> sums;
  std::vector<float> gradients;
  friend bool operator==(const Results&, const Results&) = default;
};

Results results_of(const LossTermKernels& kernels) {
  constexpr std::int64_t kRows = 7, kClasses = 17, kCount = kRows * kClasses;
  const Floats x(random_values(kCount, 1, -5, 5)), t(random_values(kCount, 2, 0, 1));
  std::vector<std::int32_t> indices;
  for (std::int64_t i = 0; i < kRows; ++i) indices.push_back(static_cast<std::int32_t>(i * 5 % kClasses));
  indices[3] = -1;
  Results results;
  Floats dx(kCount);
  double sum = 0;
  std::int64_t correct = 0;
  const auto add = [&] {
    results.sums.push_back(sum);
    results.sums.push_back(static_cast<double>(correct));
    results.gradients.insert(results.gradients.end(), dx.data(), dx.data() + kCount);
  };
  using enum ElementLoss;
  for (const ElementLoss kind : {squared, absolute, huber, log_cosh, hinge, sigmoid, focal, identity}) {
    kernels.element(TestLane(), {.kind = kind, .parameter = 1.5}, kCount, x.data(), t.data(), 0.1F, dx.data(),
                    &sum);
    add();
  }
  for (const RowLossOptions& options :
       {RowLossOptions{.smoothing = 0.1}, RowLossOptions{.focal = true, .gamma = 2}}) {
    kernels.row(TestLane(), options, kRows, kClasses, x.data(), indices.data(), nullptr, 0.1F, dx.data(),
                &sum, &correct);
    add();
  }
  kernels.row(TestLane(), {.divergence = true}, kRows, kClasses, x.data(), nullptr, t.data(), 0.1F, dx.data(),
              &sum, &correct);
  add();
  for (const bool softmax : {true, false}) {
    kernels.dice(TestLane(), {softmax, 1}, 1, kRows, kClasses, x.data(), indices.data(), nullptr, 0.1F,
                 dx.data(), &sum);
    add();
  }
  kernels.penalty(TestLane(), 0.1, 0.2, kCount, x.data(), dx.data(), &sum);
  add();
  return results;
}

TEST(LossTerms, EveryLevelHasTheSameBits) {
  const std::vector<Level> all = levels();
  const Results first = results_of(terms_of(all.front()));
  for (const double sum : first.sums) EXPECT_TRUE(std::isfinite(sum));
  for (const Level& level : all) EXPECT_TRUE(results_of(terms_of(level)) == first) << level.name;
}

}  // namespace
}  // namespace lockstep
