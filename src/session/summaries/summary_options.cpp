// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/summary_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"every_steps", integer, "10", "[1, 1e12]", "Record loss and metrics after every this many steps.",
     Change::free},
    {"every_seconds", real, "null", "(0, 1e9] seconds or null", "Also record when this much time has passed.",
     Change::free},
    {"counter_every_steps", integer, "100", "[1, 1e12]",
     "Record global_step/sec and samples/sec after every this many steps.", Change::free},
    {"events", boolean, "true", "", "Write event files for TensorBoard.", Change::free},
    {"metrics", boolean, "true", "", "Write metrics.jsonl.", Change::free},
    {"flush_seconds", real, "5", "[0.1, 3600] seconds",
     "Write what is recorded to the event files this often. They are also written before each checkpoint.",
     Change::free},
    {"timeout_seconds", real, "60", "[1, 86400] seconds",
     "How long a checkpoint, or the end of the run, waits for a disk that does not take event files and "
     "metrics.jsonl. Steps never wait.",
     Change::free},
    {"graph", boolean, "true", "", "Event files hold the graph of layers.", Change::free},
    {"hparams", boolean, "true", "",
     "Event files hold the configuration's numbers and names, for TensorBoard's HParams.", Change::free},
    {"configuration", boolean, "true", "", "Event files hold the configuration as text.", Change::free},
    {"projector", boolean, "false", "",
     "At the end of a job, write the tables of embedding layers for TensorBoard's projector, and a picture "
     "of "
     "each in the plane of its principal components.",
     Change::free},
};

}  // namespace

std::span<const ParamSpec> summary_table() {
  static const std::vector<ParamSpec> table = [] {
    std::vector<ParamSpec> all(std::begin(kTable), std::end(kTable));
    for (const SummaryPart& part : summary_parts())
      all.push_back({part.name, node, "null", "true, false or options", part.help, Change::free});
    return all;
  }();
  return table;
}

SummaryOptions summary_options(const Params& section) {
  SummaryOptions options = {.every_steps = section.integer("every_steps"),
                            .every_seconds = section.optional_real("every_seconds"),
                            .counter_every_steps = section.integer("counter_every_steps"),
                            .events = section.boolean("events"),
                            .metrics = section.boolean("metrics"),
                            .flush_seconds = section.real("flush_seconds"),
                            .timeout_seconds = section.real("timeout_seconds"),
                            .graph = section.boolean("graph"),
                            .hparams = section.boolean("hparams"),
                            .configuration = section.boolean("configuration"),
                            .projector = section.boolean("projector")};
  for (const SummaryPart& part : summary_parts())
    if (std::optional<SummarySpec> spec = summary_spec(part, section.node(part.name))) {
      spec->make();  // refuses options that do not go together
      options.parts.push_back(std::move(*spec));
    }
  return options;
}

}  // namespace lockstep
