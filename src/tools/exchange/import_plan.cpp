// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/exchange/import_plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep {

namespace {

/// What tensors and variables must have in common to be the same without the same name.
using Like = std::pair<std::string, std::vector<std::int64_t>>;

Like like(const std::string& name, const std::vector<std::int64_t>& extents) {
  const std::size_t slash = name.rfind('/');
  return {slash == std::string::npos ? name : name.substr(slash + 1), extents};
}

}  // namespace

ImportPlan propose_import(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted) {
  ImportPlan plan;
  std::vector<bool> taken(wanted.size(), false);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ImportPlan::Line line{i, {}};
    const auto same = std::ranges::find(wanted, tensors[i].tensor.name, &WantedVariable::name);
    if (same != wanted.end()) {
      line.variable = same->name;
      line.fits = same->extents == tensors[i].tensor.extents;
      taken[static_cast<std::size_t>(same - wanted.begin())] = true;
    }
    plan.lines.push_back(std::move(line));
  }
  std::map<Like, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> left;  // tensors, variables
  for (const ImportPlan::Line& line : plan.lines) {
    const ForeignTensor& tensor = tensors[line.tensor].tensor;
    if (line.variable.empty()) left[like(tensor.name, tensor.extents)].first.push_back(line.tensor);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!taken[i]) left[like(wanted[i].name, wanted[i].extents)].second.push_back(i);
  for (const auto& [key, sides] : left) {
    if (sides.first.size() != sides.second.size()) continue;
    for (std::size_t i = 0; i < sides.first.size(); ++i) {
      ImportPlan::Line& line = plan.lines[sides.first[i]];
      line.variable = wanted[sides.second[i]].name;
      line.fits = line.guessed = true;
      taken[sides.second[i]] = true;
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!taken[i]) plan.missing.push_back(wanted[i].name);
  return plan;
}

}  // namespace lockstep
