// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradient noise scale: tr(S) / |G|^2, with the covariance S of the samples' gradients and the true
// gradient G. It is the batch size above which a larger batch saves few steps (McCandlish et al. 2018, "An
// Empirical Model of Large-Batch Training", arXiv:1812.06162).
//
// Appendix A.1 there estimates both numbers without bias from the squared norms of gradients of two batch
// sizes. Here these are the N microshards of a step, and their whole batch of B samples. Microshard i has the
// share w_i of the batch, and its part g_i of the batch's gradient g is w_i times its own mean gradient:
//
//   M = sum_i |g_i|^2 / w_i            expectation |G|^2 + N tr(S) / B
//   |g|^2                              expectation |G|^2 +   tr(S) / B
//   |G|^2 is estimated by (N |g|^2 - M) / (N - 1),   tr(S) by B (M - |g|^2) / (N - 1)
//
// The scale is the ratio of their moving averages, as in the paper: a single step's ratio is biased and
// noisy. Shares are counted in what the loss is divided by (positions that are not ignored), or in samples
// where there are several heads. Empty microshards do not count.
//
// Squares are summed in double in an order that the variables alone fix (kernels/clip.h), and over
// microshards along the tree: the same bits on any number of ranks and threads.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/buffer.h"
#include "core/range.h"
#include "kernels/clip.h"
#include "train/execution_plan.h"
#include "train/executor_context.h"

namespace lockstep {

class NoiseScale {
 public:
  /// Numbers of a microshard that are summed along the tree.
  static constexpr int kWidth = 3;

  /// `gradients`: by operation. `own`: microshards of this rank. `decay`: of the moving averages, per step.
  NoiseScale(const ExecutorContext& context, std::span<const GradientRange> gradients, Range own,
             double decay);

  /// Adds the operation's gradients, which begin at `gradients`; called on the microshard's worker when they
  /// are complete.
  void add(const Lane& lane, int shard, int operation, const float* gradients);
  /// When all own microshards are done: their squares, and that of their sum over all ranks. Waits for the
  /// device.
  void finish(const float* summed);
  /// Fills a microshard's leaf. `size`: what its share of the batch is counted in; 0: nothing counts.
  void fill(int shard, double size, double* leaf) const;
  /// Updates the averages. `totals`: the sum of all leaves. Steps with numbers that are not finite, and those
  /// with fewer than two microshards, leave them as they are. `loss_scale`: of the gradients.
  void update(const double* totals, double samples, double loss_scale);

  /// The noise scale in samples; none as long as the averages give none (the noise hides the gradient).
  std::optional<double> value() const;
  /// The moving averages of |G|^2 and tr(S), for checkpoints.
  std::span<double> state() { return averages_; }

 private:
  struct Blocks {
    std::int64_t first = 0, count = 0;
  };

  const ExecutorContext context_;
  Range own_;
  double decay_;
  std::vector<Blocks> of_operation_;
  std::int64_t num_blocks_ = 0;
  Buffer relative_,
      flat_;         ///< ClipBlock: counted from the operation's first gradient, and from flat element 0
  Buffer variable_;  ///< one ClipVariable: everything
  Buffer sums_;      ///< by own microshard and block; then those of the summed gradient
  Buffer squares_;   ///< pinned: by own microshard; then that of the summed gradient
  Buffer totals_;    ///< pinned: a ClipTotals for each of these, which nobody reads
  std::array<double, 2> averages_{};
};

/// A warning if batch norms take the statistics of several microshards, whose gradients then depend on each
/// other: their norms say too much noise. Empty otherwise.
std::string noise_scale_warning(const Graph::Calls& calls);

}  // namespace lockstep
