// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/summary_options.h"

#include "config/option.h"

namespace lockstep {

namespace {

using Options = SummaryOptions;

constexpr ParamSpec kTable[] = {
    option<&Options::every_steps>("every_steps", "10", between(1, 1e12),
                                  "Record loss and metrics after every this many steps.", Change::free),
    option<&Options::every_seconds>("every_seconds", "null", above(0).up_to(1e9, "seconds").or_null(),
                                    "Also record when this much time has passed.", Change::free),
    option<&Options::counter_every_steps>(
        "counter_every_steps", "100", between(1, 1e12),
        "Record global_step/sec and samples/sec after every this many steps.", Change::free),
    option<&Options::events>("events", "true", {}, "Write event files for TensorBoard.", Change::free),
    option<&Options::metrics>("metrics", "true", {}, "Write metrics.jsonl.", Change::free),
    option<&Options::flush_seconds>(
        "flush_seconds", "5", between(0.1, 3600, "seconds"),
        "Write what is recorded to the event files this often. They are also written before each checkpoint.",
        Change::free),
    option<&Options::timeout_seconds>("timeout_seconds", "60", between(1, 86400, "seconds"),
                                      "How long a checkpoint, or the end of the run, waits for a disk that "
                                      "does not take event files and metrics.jsonl. Steps never wait.",
                                      Change::free),
    option<&Options::graph>("graph", "true", {}, "Event files hold the graph of layers.", Change::free),
    option<&Options::hparams>(
        "hparams", "true", {},
        "Event files hold the configuration's numbers and names, for TensorBoard's HParams.", Change::free),
    option<&Options::configuration>("configuration", "true", {},
                                    "Event files hold the configuration as text.", Change::free),
    option<&Options::projector>("projector", "false", {},
                                "At the end of a job, write the tables of embedding layers for TensorBoard's "
                                "projector, and a picture of each in the plane of its principal components.",
                                Change::free),
};

}  // namespace

std::span<const ParamSpec> summary_table() {
  static const std::vector<ParamSpec> table = [] {
    std::vector<ParamSpec> all(std::begin(kTable), std::end(kTable));
    for (const SummaryPart& part : summary_parts())
      all.push_back(
          {part.name, ParamType::node, "null", in_words("true, false or options"), part.help, Change::free});
    return all;
  }();
  return table;
}

SummaryOptions summary_options(const Params& section) {
  auto options = section.as<Options>();
  for (const SummaryPart& part : summary_parts())
    if (std::optional<SummarySpec> spec = summary_spec(part, section.node(part.name))) {
      spec->make();  // refuses options that do not go together
      options.parts.push_back(std::move(*spec));
    }
  return options;
}

}  // namespace lockstep
