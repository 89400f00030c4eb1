// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summary_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"every_steps", integer, "10", ">= 1", "Record loss and metrics after every this many steps."},
    {"every_seconds", real, "null", "> 0 seconds or null", "Also record when this much time has passed."},
    {"counter_every_steps", integer, "100", ">= 1",
     "Record global_step/sec and samples/sec after every this many steps."},
    {"events", boolean, "true", "", "Write event files for TensorBoard."},
    {"metrics", boolean, "true", "", "Write metrics.jsonl."},
};

}  // namespace

std::span<const ParamSpec> summary_table() { return kTable; }

SummaryOptions summary_options(const Params& section) {
  return {.every_steps = section.integer("every_steps"),
          .every_seconds = section.optional_real("every_seconds"),
          .counter_every_steps = section.integer("counter_every_steps"),
          .events = section.boolean("events"),
          .metrics = section.boolean("metrics")};
}

}  // namespace lockstep
