// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/number_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "comm/flight_recorder.h"
#include "core/trace.h"
#include "train/step_sums.h"
#include "train/trainer_options.h"

namespace lockstep {

namespace {

constexpr std::int64_t kPoolCount = std::int64_t{1} << 18;  // below this count one thread is faster

/// A state of gradients as a value of the exchange: 0 is good.
double encoded(std::int64_t step, GradientState state) {
  return state == GradientState::good ? 0 : static_cast<double>(4 * step + static_cast<int>(state));
}

/// The worst gradients of the first step that has bad ones.
void merge(StepState& into, double value) {
  if (value == 0) return;
  const auto whole = static_cast<std::int64_t>(value);
  const std::int64_t step = whole / 4;
  const auto state = static_cast<GradientState>(whole % 4);
  if (into.gradients == GradientState::good || step < into.step)
    into.gradients = state;
  else if (step == into.step)
    into.gradients = std::max(into.gradients, state);
  else
    return;
  into.step = step;
}

float most_of(const ClipRule& clip) {
  return clip.clips() ? std::numeric_limits<float>::infinity() : std::nextafter(kMostGradient, 0.0F);
}

}  // namespace

NumberWatch::NumberWatch(const ExecutorContext& context, StepSums& sums, const TrainerOptions& options)
    : context_(context),
      sums_(sums),
      looks_(!options.clip.clips_norm()),
      waits_(options.scales_loss),
      most_(most_of(options.clip)),
      is_shared_(context.device.is_host() && sums.ownership() == nullptr),
      done_{DeviceEvent(context.device), DeviceEvent(context.device)},
      found_(Buffer::pinned(context.device, kSteps * static_cast<std::size_t>(context.pool.size() + 1) *
                                                sizeof(NumbersFound))) {
  LOCKSTEP_CHECK(is_host() || sums.ownership() == nullptr, "ranks share the update on a device");
}

std::span<NumbersFound> NumberWatch::found_of(std::int64_t step) const {
  const auto count = static_cast<std::size_t>(context_.pool.size()) + 1;
  return found_.as<NumbersFound>().subspan(static_cast<std::size_t>(step % kSteps) * count, count);
}

void NumberWatch::look(std::int64_t step) {
  const Traced traced("update", "look at the numbers");
  if (is_host()) {
    if (looks_) look_at_gradients(found_of(step));
    StepState state = std::exchange(between_, {});
    merge(state, encoded(step, gradient_state(step)));
    sums_.exchange().rank_values()[StepSums::kGradientState] = encoded(state.step, state.gradients);
  } else {
    if (known_step_ != 0 && known_step_ != step) {
      done_[static_cast<std::size_t>(known_step_ % kSteps)].wait();  // the losses of this step came after it
      before_ = {known_step_, gradient_state(known_step_), statistics_are_finite(known_step_)};
    }
    look_on_device(step);
    known_step_ = step;
  }
  step_ = step;
}

void NumberWatch::look_between_meetings(std::int64_t step) {
  if (!looks_) return;
  look_at_gradients(found_of(step));
  merge(between_, encoded(step, gradient_state(step)));
}

void NumberWatch::look_on_device(std::int64_t step) {
  const DeviceEvent& done = done_[static_cast<std::size_t>(step % kSteps)];
  done.wait();  // of two steps before, or of this one, computed once more
  const std::span<NumbersFound> found = found_of(step);
  std::ranges::fill(found, NumbersFound{});
  if (looks_) look_at_gradients(found);
  const VariableStore& variables = context_.variables;
  context_.kernels.update.look(context_.lanes.front(),
                               static_cast<std::int64_t>(variables.changing_bytes() / sizeof(float)),
                               variables.others_address(), std::numeric_limits<float>::max(), &found.back());
  done.record(context_.stream());
}

void NumberWatch::look_at_gradients(std::span<NumbersFound> found) {
  std::ranges::fill(found, NumbersFound{});
  const float* const gradients = sums_.gradients();
  const auto look_at = [&](int thread, Range part) {
    const auto t = static_cast<std::size_t>(thread);
    if (part.size() > 0)
      context_.kernels.update.look(context_.lanes[t], part.size(), gradients + part.first, most_, &found[t]);
  };
  const std::int64_t all = context_.variables.dense_elements();
  const Range share =
      is_shared_ ? part_of(all, context_.sync.rank(), context_.sync.size(), 1024) : Range{0, all};
  if (is_shared_ && share.size() < kPoolCount)
    look_at(0, share);
  else
    context_.pool.run([&](int thread) {
      if (!is_shared_) return sums_.for_own_parts(thread, [&](Range part) { look_at(thread, part); });
      const Range own = part_of(share.size(), thread, context_.pool.size(), 1024);
      look_at(thread, {share.first + own.first, share.first + own.last});
    });
  look_at_rows(found.front());
}

/// Every rank has the rows of all.
void NumberWatch::look_at_rows(NumbersFound& found) const {
  for (const VariableId id : context_.variables.sparse()) {
    if (sums_.sparse() == nullptr) return;  // servers have them among the others
    const Variable& table = context_.variables[id];
    const SparseRows& rows = sums_.sparse()->total_on_device(table.sparse_index);
    const Range part =
        is_host() ? part_of(*rows.count, context_.sync.rank(), context_.sync.size()) : Range{0, rows.most};
    context_.kernels.update.look_at_rows(context_.lanes.front(), rows, part.first, part.last,
                                         table.shape.num_elements() / table.shape[0], most_, &found);
  }
}

StepState NumberWatch::found(bool now) {
  if (is_host()) {
    StepState state{.step = step_};
    StepState told;
    for (int rank = 0; rank < context_.sync.size(); ++rank)
      merge(told, sums_.exchange().rank_values_of(rank)[StepSums::kGradientState]);
    if (!told.good()) state = told;
    state.finite_statistics = statistics_are_finite(step_);
    return state;
  }
  if (now || waits_) return found_on_device();
  return before_;
}

StepState NumberWatch::found_after(std::int64_t step) {
  return is_host() || known_step_ != step ? StepState{.step = step} : found_on_device();
}

StepState NumberWatch::found_on_device() {
  const RecordedCall waiting("the GPU's gradients, to look at them", 0);
  done_[static_cast<std::size_t>(step_ % kSteps)].wait();
  return {step_, gradient_state(step_), statistics_are_finite(step_)};
}

GradientState NumberWatch::gradient_state(std::int64_t step) const {
  const auto by_thread = found_of(step).first(static_cast<std::size_t>(context_.pool.size()));
  const auto any = [&](std::int32_t NumbersFound::*what) {
    return std::ranges::any_of(by_thread, [what](const NumbersFound& found) { return found.*what != 0; });
  };
  return any(&NumbersFound::not_finite) ? GradientState::not_finite
         : any(&NumbersFound::large)    ? GradientState::large
                                        : GradientState::good;
}

/// On a device, after the wait for its look.
bool NumberWatch::statistics_are_finite(std::int64_t step) const {
  if (!is_host()) return found_of(step).back().large == 0;
  NumbersFound found;
  const VariableStore& variables = context_.variables;
  context_.kernels.update.look(context_.lanes.front(),
                               static_cast<std::int64_t>(variables.changing_bytes() / sizeof(float)),
                               variables.others_address(), std::numeric_limits<float>::max(), &found);
  return found.large == 0;
}

void NumberWatch::forget() {
  known_step_ = 0;
  before_ = {};
}

}  // namespace lockstep
