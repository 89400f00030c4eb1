// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/run_schedules.h"

#include "optim/optimizer.h"

namespace lockstep {

RunSchedules::RunSchedules(Optimizer& optimizer, const Graph& graph,
                           const std::optional<AverageOptions>& average)
    : optimizer_(optimizer), average_(average ? average->rule.schedule : nullptr) {
  for (ScheduledNumber* const number : optimizer.numbers())
    if (numbers_.empty() || !number->schedule().empty()) numbers_.push_back(number);
  for (const Graph::Node& node : graph.nodes()) {
    auto* const layer = dynamic_cast<ScheduledLayer*>(node.layer.get());
    if (layer == nullptr) continue;
    for (LayerNumber* const value : layer->numbers()) {
      if (!value->is_scheduled()) continue;
      const std::string name = fmt::format("{}/{}", node.layer->name(), value->option());
      layers_.push_back({ScheduledNumber(value->schedule(), name, value->range(), value->where()), value});
      numbers_.push_back(&layers_.back().number);
    }
  }
  if (average_) numbers_.push_back(average_.get());
}

void RunSchedules::begin(const ScheduleRun& run) {
  for (ScheduledNumber* const number : optimizer_.numbers()) number->begin(run);
  for (OfLayer& layer : layers_) layer.number.begin(run);
  if (average_) average_->begin(run);
}

void RunSchedules::set(std::int64_t step) {
  for (OfLayer& layer : layers_) layer.value->set(layer.number.at(step));
}

}  // namespace lockstep
