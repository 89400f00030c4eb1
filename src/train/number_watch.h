// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks at the summed gradients of a step before the update, for numbers that would ruin the optimizer's
// slots: those that are not finite, and those whose square is not, or nearly so. One huge value in a sample
// is enough, and the loss of its step may be an ordinary number. Looks also at the moving statistics, which
// the passes of the step have changed.
//
// A read of bits without arithmetic. On the CPU it is shared among ranks and threads: each looks at a part,
// and what it finds travels with the exchange of the step. On a GPU each rank looks at all of them, and
// nobody waits for it unless the update depends on it: what is known without a wait are the numbers of the
// step before. With servers, each looks at its gradients in every step, and all ranks know at the meeting.
//
// Gradients that are clipped by norm need no look: their norm is known, and what is left of them is small.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/buffer.h"
#include "kernels/update.h"
#include "train/executor_context.h"

namespace lockstep {

class StepSums;
struct TrainerOptions;

/// What the gradients of a step are. Also those that are `large` are finite, but their squares are not, or
/// nearly so.
enum class GradientState { good, large, not_finite };

/// A quarter of the largest float32 is the square of this. Moving statistics and sums of a few squares are
/// still finite with it.
constexpr float kMostGradient = 0x1p63F;

/// What is known of a step's numbers; the same on all ranks.
struct StepState {
  /// As StepResult::step: the step that is computed; the one before it on a GPU that is not waited for; with
  /// servers, the first bad one since the meeting before.
  std::int64_t step = 0;
  GradientState gradients = GradientState::good;
  bool finite_statistics = true;
  bool good() const { return gradients == GradientState::good && finite_statistics; }
};

class NumberWatch {
 public:
  /// References outlive it.
  NumberWatch(const ExecutorContext& context, StepSums& sums, const TrainerOptions& options);

  /// When the gradients of a step are those that the update takes, before the exchange of the step. `step` as
  /// StepResult::step. No communication, no allocation, no wait for the step's work on a device.
  void look(std::int64_t step);
  /// The same on a server in a step without a meeting: what it finds is told at the next one.
  void look_between_meetings(std::int64_t step);
  /// After that exchange. `now`: of the step that is computed, in any case; a device is waited for.
  StepState found(bool now);
  /// After step `step`: of what no found() has told, because nobody waited for it. Waits for a device.
  StepState found_after(std::int64_t step);
  /// The step is not applied, or the variables are others: nothing is known of it afterwards.
  void forget();

 private:
  static constexpr int kSteps = 2;  // the one in progress and the one before

  /// Of a step: one by lane, and that of the moving statistics.
  std::span<NumbersFound> found_of(std::int64_t step) const;
  void look_on_device(std::int64_t step);
  /// Of the last look(), after a wait.
  StepState found_on_device();
  void look_at_gradients(std::span<NumbersFound> found);
  void look_at_rows(NumbersFound& found) const;
  GradientState gradient_state(std::int64_t step) const;
  bool statistics_are_finite(std::int64_t step) const;
  bool is_host() const { return context_.device.is_host(); }

  const ExecutorContext& context_;
  StepSums& sums_;
  const bool looks_;             ///< at gradients
  const bool waits_;             ///< the loss scale waits for the device in each step
  const float most_;             ///< a gradient above it is bad
  const bool is_shared_;         ///< all ranks have all gradients, and each looks at a part
  std::int64_t step_ = 0;        ///< of the last look()
  std::int64_t known_step_ = 0;  ///< on a device: the same, if its numbers still count, and 0 else
  StepState before_;             ///< on a device: what is known without a wait
  StepState between_;            ///< with servers: of the steps since the last meeting
  std::array<DeviceEvent, kSteps> done_;
  Buffer found_;  ///< pinned: found_of()
};

}  // namespace lockstep
