// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/clock_of_run.h"

#include <algorithm>
#include <cstdlib>

#include "config/yaml_node.h"

namespace lockstep {

namespace {

/// train.batch_size of the configuration in a checkpoint; 0: it has none.
std::int64_t batch_size_in(const CheckpointHeader& header) {
  if (header.config.empty()) return 0;
  const Node root = parse_yaml(header.config, "checkpoint");
  const Node* const train = root.find("train");
  const Node* const batch = train != nullptr ? train->find("batch_size") : nullptr;
  return batch != nullptr ? std::atoll(batch->text.c_str()) : 0;
}

/// Of a checkpoint without a clock, as earlier versions wrote them: only its batch size is known.
RunClock assumed_clock(const CheckpointHeader& header, const EpochShape& now) {
  const std::int64_t batch = batch_size_in(header);
  if (batch <= 0 || batch == now.batch) return RunClock(now);
  return RunClock({.steps = std::max<std::int64_t>((now.samples + batch - 1) / batch, 1),
                   .samples = now.samples,
                   .batch = batch});
}

/// Of the epoch at the cursor.
RunClock::Rest rest_of_epoch(const StepPlan& plan, Cursor cursor) {
  RunClock::Rest rest;
  if (cursor.samples_consumed == 0) return rest;
  for (Cursor at = cursor; at.epoch == cursor.epoch; at = plan.advance(at)) ++rest.steps;
  rest.samples = std::max<std::int64_t>(plan.samples_per_epoch() - cursor.samples_consumed, 0);
  return rest;
}

}  // namespace

EpochShape epoch_shape(const StepPlan& plan) {
  return {
      .steps = plan.steps_per_epoch(), .samples = plan.samples_per_epoch(), .batch = plan.spec().batch_size};
}

RunClock clock_of_run(const StepPlan& plan, const CheckpointHeader* continues) {
  const EpochShape now = epoch_shape(plan);
  if (continues == nullptr || continues->global_step == 0) return RunClock(now);
  const std::string text = continues->setting(kClockSettings);
  RunClock clock = text.empty() ? assumed_clock(*continues, now)
                                : RunClock::parse(text, "the clock of the run in its checkpoint");
  if (clock.shape() == now) return clock;
  const Cursor cursor{continues->epoch, continues->samples_consumed};
  const RunClock::Rest rest = rest_of_epoch(plan, cursor);
  clock.change(continues->global_step, cursor.epoch + (rest.steps > 0 ? 1 : 0), rest, now);
  return clock;
}

}  // namespace lockstep
