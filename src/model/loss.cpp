// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/loss.h"

#include "config/named_options.h"

namespace lockstep {

LossCounts Loss::count(std::int64_t n, const Shape& output, const Labels&) const {
  return {static_cast<double>(n * terms(output)), static_cast<double>(n * positions(output))};
}

void Loss::predict(const KernelTable&, Device& device, const Lane& lane, std::int64_t n, const Shape& output,
                   const float* outputs, float* predictions) const {
  device.copy(lane.stream, predictions, outputs,
              static_cast<std::size_t>(n * output.num_elements()) * sizeof(float));
}

std::unique_ptr<Loss> make_loss(const Node& node) {
  const NamedOptions named = named_options(node, "loss");
  const LossEntry& entry = loss_table().at(named);
  return entry.make(Params(named.options, entry.table, "loss " + named.name));
}

}  // namespace lockstep
