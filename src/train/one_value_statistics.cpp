// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/one_value_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/name_list.h"

namespace lockstep {

namespace {

/// The least number of samples above 0 that share statistics in a batch of `count`.
std::int64_t smallest_group(const StepPlan& plan, std::int64_t count, int group_size) {
  const std::int64_t shards = plan.spec().shards, size = group_size == 0 ? shards : group_size;
  std::int64_t least = count;
  for (std::int64_t first = 0; first + size <= shards; first += size) {
    const std::int64_t samples =
        plan.shard_range(count, first + size - 1).last - plan.shard_range(count, first).first;
    if (samples > 0) least = std::min(least, samples);
  }
  return least;
}

/// The layers that normalise one value per channel in a batch of `count` samples.
std::vector<std::string> layers_with_one_value(const Graph& graph, const StepPlan& plan, std::int64_t count) {
  std::vector<std::string> names;
  for (const Graph::Node& node : graph.nodes()) {
    const auto* layer = dynamic_cast<const CollectiveLayer*>(node.layer.get());
    if (layer == nullptr || !layer->synchronises()) continue;
    const CollectiveLayer::CollectiveTraits traits = layer->collective_traits();
    if (traits.forward.merge != CollectiveLayer::Merge::moments) continue;
    const Shape& shape = node.outputs.front();
    if (shape.num_elements() / shape.last() * smallest_group(plan, count, traits.group_size) == 1)
      names.push_back(layer->name());
  }
  return names;
}

}  // namespace

std::string one_value_statistics(const Graph& graph, const StepPlan& plan) {
  const StepPlanSpec& spec = plan.spec();
  const bool fills = spec.last_batch == LastBatch::fill;
  const std::int64_t full = fills ? spec.batch_size : std::min(spec.batch_size, plan.order_size()),
                     rest = plan.order_size() % spec.batch_size;
  if (const std::vector<std::string> layers = layers_with_one_value(graph, plan, full); !layers.empty())
    return fmt::format(
        "{}: batch norm of one value per channel in batches of {}: the result is beta and learns nothing. "
        "Give train.batch_size or the layer's group more samples, or use layer_norm",
        name_list(layers), full);
  if (rest == 0 || spec.last_batch != LastBatch::smaller) return {};
  const std::vector<std::string> layers = layers_with_one_value(graph, plan, rest);
  if (layers.empty()) return {};
  return fmt::format(
      "{}: batch norm of one value per channel in the last batch of each epoch, which has {} of {} samples: "
      "the result is beta there, and learns nothing{}. train.last_batch: drop or fill, or another "
      "train.batch_size, avoids it",
      name_list(layers), rest, plan.order_size(),
      rest == 1 ? "; the moving statistics leave that step out" : "");
}

}  // namespace lockstep
