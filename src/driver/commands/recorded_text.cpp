// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/recorded_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/shown_text.h"

namespace lockstep {

namespace {

std::string line(std::string_view name, std::string_view text) {
  return shown_format("{:<17} {}\n", name, text);
}

/// "loss and metrics every 10 steps, to event files and metrics.jsonl".
std::string always(const SummaryOptions& summary) {
  std::string when =
      summary.every_steps == 1 ? "every step" : shown_format("every {} steps", summary.every_steps);
  if (summary.every_seconds) when += shown_format(" and every {:g} s", *summary.every_seconds);
  const char* const where = summary.events && summary.metrics ? "event files and metrics.jsonl"
                            : summary.events                  ? "event files"
                                                              : "metrics.jsonl";
  return shown_format("loss and metrics {}, to {}", when, where);
}

/// What of it is written: pictures and histograms need event files.
std::string part(const RecordedText& text, const SummaryOptions& summary) {
  std::vector<std::string> what;
  if (!text.events.empty() && summary.events) what.push_back(text.events);
  if (!text.numbers.empty())
    what.push_back(text.numbers + (summary.events && summary.metrics ? ", also to metrics.jsonl" : ""));
  if (what.empty()) return "nothing, because summary.events is false";
  std::string all =
      shown_format("{}{}{}: {}", text.when, text.of.empty() ? "" : ", ", text.of, fmt::join(what, "; "));
  if (text.kept_bytes > 0)
    all +=
        shown_format("; {:.2f} MB of memory for {}", 1e-6 * static_cast<double>(text.kept_bytes), text.kept);
  return all;
}

/// Of a run that ends before the interval is over.
std::string short_run(const SummarySpec& spec, std::int64_t steps) {
  constexpr std::string_view kInterval = "every_steps";
  if (std::ranges::find(spec.part.table, kInterval, &ParamSpec::name) == spec.part.table.end()) return {};
  const auto every = spec.options.optional_integer(kInterval);
  if (!every || *every <= steps) return {};
  return shown_format("; the run has {} steps: the first one alone, or give every_steps: {}", steps,
                      std::max<std::int64_t>(1, steps / 10));
}

}  // namespace

std::string recorded_text(const Config& config, const Model& model, const Dataset& train,
                          const RunNames& names, std::int64_t steps) {
  const SummaryOptions& summary = config.summary;
  if (!summary.events && !summary.metrics)
    return line("records", "nothing: summary.events and summary.metrics are false");
  std::string text = line("records", always(summary));
  for (const SummarySpec& spec : summary.parts)
    text += line(shown_format(" {}", spec.part.name),
                 part(spec.make()->recorded({.names = names, .model = model, .train = train}), summary) +
                     short_run(spec, steps));
  return text;
}

}  // namespace lockstep
