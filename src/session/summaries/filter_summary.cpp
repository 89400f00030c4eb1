// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/filter_summary.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "config/option.h"
#include "io/sample_pictures.h"
#include "session/hook_context.h"
#include "session/summaries/picture_data.h"
#include "session/summaries/summary_part.h"
#include "train/executor_context.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

using Options = FilterSummary::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::layers>("layers", "null", or_null(),
                             "Patterns of the layers. null: the first conv2d on 1 or 3 channels.",
                             Change::free),
    option<&Options::every_steps>("every_steps", "500", between(1, 1e12),
                                  "After the first step, and at multiples of so many.", Change::free),
};

constexpr std::int64_t kPerRow = 8, kMost = 64;

/// window x window x channels x filters.
Picture sheet_of(const Tensor& kernel) {
  const Shape& shape = kernel.shape();
  const std::int64_t channels = shape[2], filters = std::min(shape[3], kMost);
  const std::span<const float> values(kernel.f32(), static_cast<std::size_t>(shape.num_elements()));
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  const Shape one{shape[0], shape[1], channels};
  std::vector<float> filter(static_cast<std::size_t>(one.num_elements()));
  std::vector<std::vector<Picture>> rows;
  for (std::int64_t f = 0; f < filters; ++f) {
    for (std::size_t i = 0; i < filter.size(); ++i)
      filter[i] = values[i * static_cast<std::size_t>(shape[3]) + static_cast<std::size_t>(f)];
    if (f % kPerRow == 0) rows.emplace_back();
    rows.back().push_back(picture_of(one, filter, -most, most));
  }
  return contact_sheet(rows);
}

std::string layer_of(const std::string& kernel) { return kernel.substr(0, kernel.rfind('/')); }

}  // namespace

FilterSummary::FilterSummary(Options options, const Params& params)
    : SummaryHook("summary.filters", HookScope::chief_only),
      options_(std::move(options)),
      where_(params.where()),
      timer_(options_.every_steps, {}) {}

void FilterSummary::check(const RunNames& names) const {
  if (!options_.layers.is_all()) options_.layers.among(names.layers);
}

std::vector<VariableId> FilterSummary::kernels_of(const Graph& graph, const VariableStore& store) const {
  std::vector<std::string> names;
  for (const Graph::Node& node : graph.nodes()) names.push_back(node.layer->name());
  const bool first_only = options_.layers.is_all();
  const std::vector<bool> chosen = options_.layers.among(names);
  std::vector<VariableId> kernels;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!chosen[i] || std::string_view(graph.nodes()[i].layer->kind()) != "conv2d") continue;
    const auto found = std::ranges::find(store.variables(), names[i] + "/kernel", &Variable::name);
    if (found == store.variables().end()) continue;  // a layer that shares that of another one
    const auto kernel = static_cast<VariableId>(found - store.variables().begin());
    const Shape& shape = store[kernel].shape;
    if (shape.rank() != 4 || (shape[2] != 1 && shape[2] != 3)) continue;
    kernels.push_back(kernel);
    if (first_only) break;
  }
  if (kernels.empty())
    throw Error(ErrorKind::config, "summary.filters: no chosen layer is a conv2d on 1 or 3 channels", where_,
                "Filters on more channels are no pictures. Leave summary.filters out.");
  return kernels;
}

RecordedText FilterSummary::recorded(const Run& run) const {
  std::string names;
  for (const VariableId kernel : kernels_of(*run.model.graph, *run.model.variables))
    names += (names.empty() ? "" : ", ") + layer_of((*run.model.variables)[kernel].name);
  return {.when = from_the_first_text(options_.every_steps), .events = "pictures of " + names};
}

void FilterSummary::begin(HookContext& context) {
  kernels_ = kernels_of(context.trainer().context().graph, context.variables());
}

void FilterSummary::after_run(HookContext& context, const StepResult& result) {
  if (!timer_.due_from_the_first(result.step) || !context.reports().has_events()) return;
  std::vector<SummaryValue> values;
  for (const VariableId kernel : kernels_) {
    const std::string& name = context.variables()[kernel].name;
    values.push_back(
        {"filters/" + layer_of(name), picture_data(sheet_of(context.variables().tensor(kernel)))});
  }
  context.reports().summary(RunReports::Split::train, result.step, std::move(values));
}

extern const SummaryPart kFilterSummary = {"filters", "Pictures of the filters of the first convolution.",
                                           kTable, make_summary<FilterSummary>};

}  // namespace lockstep
