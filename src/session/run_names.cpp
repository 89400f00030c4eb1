// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/params.h"
#include "core/name_list.h"

namespace lockstep {

namespace {
constexpr std::string_view kSplit = "eval/";
}

std::string_view without_split(std::string_view metric) {
  return metric.starts_with(kSplit) ? metric.substr(kSplit.size()) : metric;
}

std::string with_split(std::string_view metric) { return fmt::format("{}{}", kSplit, without_split(metric)); }

bool RunNames::evaluates(std::string_view metric) const {
  return std::ranges::find(evaluation, without_split(metric)) != evaluation.end();
}

std::string RunNames::advice_for(std::string_view metric) const {
  if (evaluation.empty()) return "There is no evaluation: add `eval:` to section data.";
  const std::string near =
      nearest(without_split(metric), std::vector<std::string_view>(evaluation.begin(), evaluation.end()));
  std::vector<std::string> known;
  for (const std::string& name : evaluation) known.push_back(with_split(name));
  std::ranges::sort(known);
  return fmt::format("{}There are: {}; more come with eval.metrics.",
                     near.empty() ? "" : fmt::format("Did you mean '{}'? ", near), name_list(known));
}

}  // namespace lockstep
