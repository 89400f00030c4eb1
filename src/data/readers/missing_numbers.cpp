// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/missing_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/name_list.h"
#include "core/scalar.h"

namespace lockstep {

MissingNumbers::MissingNumbers(const Params& params, const std::vector<std::string>& features) {
  const Node node = params.as<MissingOptions>().missing;
  const auto add = [&](const std::string& feature, const Node& value) {
    if (value.kind == Node::Kind::scalar && value.text == "error" && !value.quoted) return;
    const auto number =
        value.kind == Node::Kind::scalar && !value.quoted ? parse_real(value.text) : std::nullopt;
    const float converted = number ? static_cast<float>(*number) : NAN;
    if (!std::isfinite(converted))
      throw params.error("missing", "must be error, a finite number, or a map of features to them",
                         "For example 0, or {age: 30, height: 1.7}.");
    numbers_[feature] = converted;
  };
  if (node.kind != Node::Kind::map) {
    for (const std::string& feature : features) add(feature, node);
    return;
  }
  for (const auto& [feature, value] : node.entries) {
    if (std::ranges::find(features, feature) == features.end())
      throw params.error("missing", fmt::format("names '{}', which is no feature", feature),
                         fmt::format("The features are: {}.", name_list(features)));
    add(feature, value);
  }
}

std::optional<float> MissingNumbers::of(std::string_view feature) const {
  const auto found = numbers_.find(feature);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace lockstep
