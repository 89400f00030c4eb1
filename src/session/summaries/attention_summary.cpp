// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/attention_summary.h"

#include <algorithm>
#include <cmath>

#include "config/option.h"
#include "io/sample_pictures.h"
#include "session/hook_context.h"
#include "session/summaries/picture_data.h"
#include "session/summaries/summary_part.h"
#include "train/executor.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

using Options = AttentionSummary::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::layers>("layers", "null", or_null(), "Patterns of the layers. null: all.", Change::free),
    option<&Options::every_steps>("every_steps", "500", between(1, 1e12),
                                  "After the first step, and at multiples of so many.", Change::free),
};

constexpr std::int64_t kPerRow = 4;
/// Of longer sequences the beginning is shown.
constexpr std::int64_t kMostPositions = 256;

/// softmax(q k^T / sqrt(head_size)) of one head, row by row; masked keys are 0. q and k: rows of `width`.
std::vector<float> probabilities(const AttentionShape& shape, std::span<const float> q,
                                 std::span<const float> k, std::int64_t head, std::int64_t queries,
                                 std::int64_t keys, std::int64_t length) {
  const std::int64_t width = shape.heads * shape.head_size;
  std::vector<float> map(static_cast<std::size_t>(queries * keys));
  std::vector<double> row(static_cast<std::size_t>(shape.keys));
  for (std::int64_t i = 0; i < queries; ++i) {
    if (shape.self && i >= length) break;
    const std::int64_t count = shape.causal ? std::min(length, i + 1) : length;
    double largest = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < shape.head_size; ++d)
        score += static_cast<double>(q[static_cast<std::size_t>(i * width + head * shape.head_size + d)]) *
                 static_cast<double>(k[static_cast<std::size_t>(j * width + head * shape.head_size + d)]);
      score /= std::sqrt(static_cast<double>(shape.head_size));
      row[static_cast<std::size_t>(j)] = score;
      largest = std::max(largest, score);
    }
    for (std::int64_t j = 0; j < count; ++j)
      sum += row[static_cast<std::size_t>(j)] = std::exp(row[static_cast<std::size_t>(j)] - largest);
    for (std::int64_t j = 0; j < std::min(count, keys); ++j)
      map[static_cast<std::size_t>(i * keys + j)] =
          static_cast<float>(row[static_cast<std::size_t>(j)] / sum);
  }
  return map;
}

}  // namespace

AttentionSummary::AttentionSummary(Options options, const Params& params)
    : SummaryHook("summary.attention", HookScope::chief_only),
      options_(std::move(options)),
      where_(params.where()),
      timer_(options_.every_steps, {}) {}

void AttentionSummary::check(const RunNames& names) const { options_.layers.among(names.layers); }

RecordedText AttentionSummary::recorded(const Run& run) const {
  const std::vector<bool> is_chosen = options_.layers.among(run.names.layers);
  std::vector<std::string> chosen;
  std::size_t all = 0;
  for (std::size_t i = 0; i < is_chosen.size(); ++i) {
    if (dynamic_cast<const AttentionMaps*>(run.model.graph->nodes()[i].layer.get()) == nullptr) continue;
    ++all;
    if (is_chosen[i]) chosen.push_back(run.names.layers[i]);
  }
  require_any(!chosen.empty());
  return {.when = from_the_first_text(options_.every_steps),
          .of = chosen_text(chosen, all, all == 1 ? "attention layer" : "attention layers"),
          .events = "pictures"};
}

void AttentionSummary::require_any(bool any) const {
  if (!any)
    throw Error(ErrorKind::config, "summary.attention: no chosen layer is an attention layer", where_,
                "Leave summary.attention out.");
}

void AttentionSummary::begin(HookContext& context) {
  run_ = &context.trainer().context();
  std::vector<std::string> names;
  for (const Graph::Node& node : run_->graph.nodes()) names.push_back(node.layer->name());
  const std::vector<bool> chosen = options_.layers.among(names);
  const Graph::Calls& calls = context.trainer().executor().calls();
  for (std::size_t i = 0; i < calls.operations.size(); ++i) {
    const Graph::Operation& operation = calls.operations[i];
    const auto* const maps = dynamic_cast<const AttentionMaps*>(operation.layer);
    if (maps == nullptr || !chosen[static_cast<std::size_t>(operation.node)]) continue;
    layers_.push_back({maps, "attention/" + operation.layer->name(), static_cast<int>(i), {}});
  }
  require_any(!layers_.empty());
}

void AttentionSummary::after_create_session(HookContext& context) {
  context.trainer().remove_observer(*this);
}

void AttentionSummary::before_run(HookContext& context) {
  if (!timer_.due_from_the_first(context.global_step() + 1)) return;
  for (Attending& layer : layers_) layer.heads.clear();
  context.trainer().add_observer(*this);
}

/// The first `width` numbers of `rows` rows, as float32 in host memory.
std::vector<float> AttentionSummary::host_rows(ConstData from, std::int64_t rows, std::int64_t stride,
                                               std::int64_t width) const {
  std::vector<float> values(static_cast<std::size_t>(rows * width));
  with_type(from.type(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> all(static_cast<std::size_t>((rows - 1) * stride + width));
    run_->device.copy_to_host(all.data(), from.address(), all.size() * sizeof(T));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < width; ++j)
        values[static_cast<std::size_t>(i * width + j)] =
            to_float(all[static_cast<std::size_t>(i * stride + j)]);
  });
  return values;
}

void AttentionSummary::forward(int operation, const Pass& pass) {
  if (pass.shard != 0) return;
  for (Attending& layer : layers_) {
    if (layer.operation != operation) continue;
    run_->device.synchronize(pass.lane.stream);
    const auto [shape, inputs] = layer.maps->attention_view(pass);
    const std::int64_t width = shape.heads * shape.head_size;
    const std::int64_t queries = std::min(shape.queries, kMostPositions),
                       keys = std::min(shape.keys, kMostPositions);
    const std::vector<float> q = host_rows(inputs.q, queries, shape.query_stride, width),
                             k = host_rows(inputs.k, shape.keys, shape.key_stride, width);
    std::int64_t length = shape.keys;
    if (inputs.lengths != nullptr) {
      float of_sample = 0;
      run_->device.copy_to_host(&of_sample, inputs.lengths, sizeof of_sample);
      length = length_of(of_sample, shape.keys);
    }
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::vector<float> map = probabilities(shape, q, k, head, queries, keys, length);
      layer.heads.push_back(picture_of({queries, keys, 1}, map, 0, *std::ranges::max_element(map)));
    }
  }
}

void AttentionSummary::after_run(HookContext& context, const StepResult& result) {
  if (!timer_.due_from_the_first(result.step)) return;
  context.trainer().remove_observer(*this);
  if (!context.reports().has_events()) return;
  std::vector<SummaryValue> values;
  for (const Attending& layer : layers_) {
    std::vector<std::vector<Picture>> rows;
    for (std::size_t head = 0; head < layer.heads.size(); ++head) {
      if (head % kPerRow == 0) rows.emplace_back();
      rows.back().push_back(layer.heads[head]);
    }
    if (!rows.empty()) values.push_back({layer.tag, picture_data(contact_sheet(rows))});
  }
  if (!values.empty()) context.reports().summary(RunReports::Split::train, result.step, std::move(values));
}

extern const SummaryPart kAttentionSummary = {
    "attention", "Pictures of what the heads of attention layers attend to, for one sample.", kTable,
    make_summary<AttentionSummary>};

}  // namespace lockstep
