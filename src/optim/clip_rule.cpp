// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/clip_rule.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "config/named_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"clip_global_norm", real, "null", "(0, 1e30] or null",
     "Limit of the norm of all gradients together. If the norm is larger, all gradients are multiplied "
     "by limit / norm."},
    {"clip_norm", real, "null", "(0, 1e30] or null",
     "The same for the gradient of each variable separately."},
    {"clip_average_norm", real, "null", "(0, 1e30] or null",
     "The same for the norm of a variable's gradient divided by its number of elements."},
    {"clip_value", reals, "null", "[-1e30, 1e30] or null",
     "Limit of each element: c for [-c, c], or [low, high] with low <= 0 <= high. At most one of the "
     "four limits may be given."},
    {"record_norm", boolean, "false", "",
     "Record the norm of all gradients before clipping as gradient_norm. It is always recorded where "
     "norms are limited."},
    {"noise_scale", boolean, "false", "",
     "Record the gradient noise scale, the batch size above which a larger batch saves few steps, from the "
     "norms of the microshards' gradients."},
    {"noise_scale_decay", real, "0.99", "[0, 1)",
     "Decay per step of the two moving averages whose ratio the noise scale is."},
};

constexpr std::pair<std::string_view, ClipRule::By> kWays[] = {
    {"clip_global_norm", ClipRule::By::global_norm},
    {"clip_norm", ClipRule::By::norm},
    {"clip_average_norm", ClipRule::By::average_norm},
    {"clip_value", ClipRule::By::value},
};

/// clip_value: c stands for [-c, c].
void read_range(const Params& section, ClipRule& rule) {
  const std::vector<double>& limits = section.reals("clip_value");
  const char* const advice =
      "Give a limit c > 0, which stands for [-c, c], or [low, high] with low <= 0 <= high: a gradient of 0 "
      "stays 0.";
  if (limits.size() != 1 && limits.size() != 2)
    throw section.error("clip_value", fmt::format("there are {} numbers", limits.size()), advice);
  rule.high = static_cast<float>(limits.back());
  rule.low = limits.size() == 2 ? static_cast<float>(limits.front()) : -rule.high;
  if (!(rule.low <= 0 && rule.high >= 0 && rule.low < rule.high))
    throw section.error("clip_value", fmt::format("[{}, {}] is no range around 0", rule.low, rule.high),
                        advice);
}

}  // namespace

std::span<const ParamSpec> clip_table() { return kTable; }

ClipRule clip_rule(const Params& section) {
  ClipRule rule;
  rule.record_norm = section.boolean("record_norm");
  rule.noise_scale = section.boolean("noise_scale");
  rule.noise_decay = section.real("noise_scale_decay");
  std::string_view first;
  for (const auto& [name, by] : kWays) {
    if (!section.has(name)) continue;
    if (const std::string_view blamed = rule.clips() ? option_to_blame(section, {first, name}) : "";
        !blamed.empty())
      throw section.error(blamed, fmt::format("{} is given, too", blamed == name ? first : name),
                          "Gradients are clipped in one way: leave out all of clip_global_norm, clip_norm, "
                          "clip_average_norm and clip_value but one.");
    first = name;
    rule.by = by;
    if (by == ClipRule::By::value) {
      read_range(section, rule);
      continue;
    }
    rule.limit = section.real(name);
  }
  return rule;
}

}  // namespace lockstep
