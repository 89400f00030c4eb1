// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds out why a step's numbers are bad: computes the step's gradients once more, and looks at each number
// on the way. A step is a computation without state, so it happens again the same way, unless the machine was
// at fault. Steps whose numbers are good pay nothing for it.
#pragma once

#include <string>
#include <vector>

#include "core/range.h"
#include "train/step_observer.h"

namespace lockstep {

class Trainer;
struct ExecutorContext;

/// What was found in one microshard. Ranks exchange it as bytes.
struct BadMicroshard {
  enum Stage : std::int32_t { none, features, output, loss, loss_gradient, gradient, input_gradient };
  static constexpr int kListed = 4;

  std::int32_t shard = -1;               ///< -1: nothing
  Stage stage = none;                    ///< where the first number is that is not finite
  std::int32_t number = 0;               ///< operation; for `gradient` the variable
  std::int32_t order = 0;                ///< of the place in the step
  std::int32_t num_bad = 0;              ///< samples in which it is; 0: not known
  std::int64_t first_sample = 0, n = 0;  ///< of the microshard, in the batch
  std::int64_t bad[kListed] = {};        ///< the first of these samples, counted from first_sample
  double mean_loss = 0;                  ///< the sum of its heads' mean losses
  std::int64_t largest = 0;              ///< the sample with the feature furthest from 0, likewise counted
  float largest_feature = 0;             ///< its amount
};

/// Why a step is bad: a number is not finite; a number is so large that the update, or a moving statistic,
/// would not be finite; the loss jumps.
enum class BadNumbers { not_finite, large, spike };

class BadStepFinder final : public StepObserver {
 public:
  /// `calls`: those of the trainer. References outlive it. `limit`: a number is bad unless it is below.
  BadStepFinder(const ExecutorContext& context, const Graph::Calls& calls, float limit);

  /// Looks at features in host memory, alone.
  void look_at_features(const Microshard& m, const float* features);
  void fetched(const Microshard&, const Lane&, const float* features) override;
  void forward(int operation, const Pass& pass) override;
  void lost(const Microshard&, const Lane&, std::span<const HeadSums>, std::span<const LossStage::Place>,
            const LabelBlock&) override;
  void backward(int operation, const Pass& pass) override;
  void backward_local(int operation, const Pass& pass) override;

  /// The microshards of all ranks where the earliest place is that is not finite: later ones got it from
  /// there, also in other microshards. At most kMost; the same on all ranks. All ranks.
  std::vector<BadMicroshard> gather(Communicator& control) const;
  /// The microshard with the largest mean loss; the same on all ranks. All ranks.
  BadMicroshard largest_loss(Communicator& control) const;
  /// "the output of conv1".
  std::string place_text(const BadMicroshard& bad) const;

  static constexpr int kMost = 4;

 private:
  BadMicroshard& at(int shard) { return all_[static_cast<std::size_t>(shard - own_.first)]; }
  bool clean(int shard) { return at(shard).stage == BadMicroshard::none; }
  /// Looks at n rows of `width` numbers; the first bad ones are noted with the place.
  void look(int shard, BadMicroshard::Stage stage, int number, ConstData values, std::int64_t rows,
            std::int64_t width);
  void look_at_host(int shard, BadMicroshard::Stage stage, int number, ConstData values, std::int64_t rows,
                    std::int64_t width);
  std::int32_t order_of(BadMicroshard::Stage stage, int operation) const;
  void look_at_variables(int operation, const Pass& pass);
  static void keep_first(std::vector<BadMicroshard>& all);

  const ExecutorContext& context_;
  const Graph::Calls& calls_;
  float limit_;
  Range own_;
  std::vector<BadMicroshard> all_;  ///< by own microshard
};

/// Lines about the microshards with bad numbers: the first number, and the samples, with their places in the
/// data files; of a spike about the microshard with the largest loss. The same text on all ranks. All ranks,
/// between compute() and apply(). A step that cannot be computed once more, because its variables are others
/// now, is looked for in its features alone. `step` as StepResult::step.
std::string find_bad_step(Trainer& trainer, Communicator& control, std::int64_t step, BadNumbers bad);

}  // namespace lockstep
