// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/summary_part.h"

#include <fmt/format.h>

#include <array>

#include "session/summaries/activation_summary.h"
#include "session/summaries/attention_summary.h"
#include "session/summaries/confusion_summary.h"
#include "session/summaries/filter_summary.h"
#include "session/summaries/gradient_summary.h"
#include "session/summaries/input_summary.h"
#include "session/summaries/rank_summary.h"
#include "session/summaries/update_summary.h"
#include "session/summaries/weight_summary.h"

namespace lockstep {

namespace {

template <typename T>
std::unique_ptr<SummaryHook> make(const Params& options) {
  return std::make_unique<T>(options);
}

const std::array kParts = {
    SummaryPart{"weights", "Histograms of variables.", WeightSummary::table(), make<WeightSummary>},
    SummaryPart{"gradients", "Histograms and norms of the gradients of the global batch.",
                GradientSummary::table(), make<GradientSummary>},
    SummaryPart{"updates", "Histograms of what a step adds to variables, and how large that is beside them.",
                UpdateSummary::table(), make<UpdateSummary>},
    SummaryPart{"activations", "Histograms of the outputs of layers over the global batch.",
                ActivationSummary::table(), make<ActivationSummary>},
    SummaryPart{"inputs",
                "Samples as the model sees them, as pictures, sounds, words or numbers, with their labels "
                "and predictions.",
                InputSummary::table(), make<InputSummary>},
    SummaryPart{"attention", "Pictures of what the heads of attention layers attend to, for one sample.",
                AttentionSummary::table(), make<AttentionSummary>},
    SummaryPart{"filters", "Pictures of the filters of the first convolution.", FilterSummary::table(),
                make<FilterSummary>},
    SummaryPart{"confusion_matrix", "Pictures of the confusion matrices of evaluations.",
                ConfusionSummary::table(), make<ConfusionSummary>, true},
    SummaryPart{"ranks",
                "What the ranks spend their steps on: ranks/work_seconds_max, ranks/communication_share and "
                "others.",
                RankSummary::table(), make<RankSummary>},
};

}  // namespace

std::span<const SummaryPart> summary_parts() { return kParts; }

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
