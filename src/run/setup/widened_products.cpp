// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/widened_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep {

std::string widened_products(const Graph& graph) {
  struct Reason {
    std::string why, layers;
  };
  std::vector<Reason> reasons;
  for (const Graph::Node& node : graph.nodes()) {
    const std::string why(node.layer->traits().widened_products);
    if (why.empty()) continue;
    const auto found = std::ranges::find(reasons, why, &Reason::why);
    if (found == reasons.end())
      reasons.push_back({why, node.layer->name()});
    else
      found->layers += ", " + node.layer->name();
  }
  std::string text;
  for (const Reason& reason : reasons)
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", reason.layers, reason.why);
  return text;
}

}  // namespace lockstep
