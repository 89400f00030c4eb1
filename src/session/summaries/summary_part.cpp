// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/summary_part.h"

#include <fmt/format.h>

namespace lockstep {

// Lockstep's own parts, one per line. Each entry is defined in its file.
#define LOCKSTEP_SUMMARIES(PART) \
  PART(kWeightSummary)           \
  PART(kGradientSummary)         \
  PART(kUpdateSummary)           \
  PART(kActivationSummary)       \
  PART(kInputSummary)            \
  PART(kAttentionSummary)        \
  PART(kFilterSummary)           \
  PART(kConfusionSummary)        \
  PART(kRankSummary)

LOCKSTEP_TABLE(SummaryPart, summary_parts, "summary", LOCKSTEP_SUMMARIES)

std::optional<SummarySpec> summary_spec(const SummaryPart& part, const Node& value) {
  if (is_null(value)) return std::nullopt;
  const std::string subject = fmt::format("summary.{}", part.name);
  if (value.kind == Node::Kind::scalar && !value.quoted && (value.text == "true" || value.text == "false")) {
    if (value.text == "false") return std::nullopt;
    Node defaults;
    defaults.where = value.where;
    return SummarySpec{part, Params(defaults, part.table, subject)};
  }
  if (value.kind != Node::Kind::map)
    throw Error(ErrorKind::config, fmt::format("{} is neither true nor false nor a map of options", subject),
                value.where, fmt::format("Write `{0}: true`, or `{0}: {{every_steps: 100}}`.", part.name));
  return SummarySpec{part, Params(value, part.table, subject)};
}

}  // namespace lockstep
