// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/clip_rule.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "config/named_options.h"
#include "config/option.h"

namespace lockstep {

namespace {

/// The section as it is written.
struct Options {
  std::optional<double> clip_global_norm, clip_norm, clip_average_norm;
  std::optional<std::vector<double>> clip_value;
  bool record_norm = false, noise_scale = false;
  double noise_scale_decay = 0;
};

constexpr ParamSpec kTable[] = {
    option<&Options::clip_global_norm>(
        "clip_global_norm", "null", above(0).up_to(1e30).or_null(),
        "Limit of the norm of all gradients together. If the norm is larger, all gradients are multiplied "
        "by limit / norm."),
    option<&Options::clip_norm>("clip_norm", "null", above(0).up_to(1e30).or_null(),
                                "The same for the gradient of each variable separately."),
    option<&Options::clip_average_norm>(
        "clip_average_norm", "null", above(0).up_to(1e30).or_null(),
        "The same for the norm of a variable's gradient divided by its number of elements."),
    option<&Options::clip_value>(
        "clip_value", "null", between(-1e30, 1e30).or_null(),
        "Limit of each element: c for [-c, c], or [low, high] with low <= 0 <= high. At most one of the "
        "four limits may be given."),
    option<&Options::record_norm>(
        "record_norm", "false", {},
        "Record the norm of all gradients before clipping as gradient_norm. It is always recorded where "
        "norms are limited."),
    option<&Options::noise_scale>("noise_scale", "false", {},
                                  "Record the gradient noise scale, the batch size above which a larger "
                                  "batch saves few steps, from the "
                                  "norms of the microshards' gradients."),
    option<&Options::noise_scale_decay>(
        "noise_scale_decay", "0.99", at_least(0).below(1),
        "Decay per step of the two moving averages whose ratio the noise scale is."),
};

/// clip_value: c stands for [-c, c].
void read_range(const Params& section, const std::vector<double>& limits, ClipRule& rule) {
  const std::string_view option = option_name<&Options::clip_value>(section);
  const char* const advice =
      "Give a limit c > 0, which stands for [-c, c], or [low, high] with low <= 0 <= high: a gradient of 0 "
      "stays 0.";
  if (limits.size() != 1 && limits.size() != 2)
    throw section.error(option, fmt::format("there are {} numbers", limits.size()), advice);
  rule.high = static_cast<float>(limits.back());
  rule.low = limits.size() == 2 ? static_cast<float>(limits.front()) : -rule.high;
  if (!(rule.low <= 0 && rule.high >= 0 && rule.low < rule.high))
    throw section.error(option, fmt::format("[{}, {}] is no range around 0", rule.low, rule.high), advice);
}

}  // namespace

std::span<const ParamSpec> clip_table() { return kTable; }

ClipRule clip_rule(const Params& section) {
  const auto options = section.as<Options>();
  ClipRule rule;
  rule.record_norm = options.record_norm;
  rule.noise_scale = options.noise_scale;
  rule.noise_decay = options.noise_scale_decay;
  std::string_view first;
  const auto choose = [&](ClipRule::By by, std::string_view name) {
    if (rule.clips()) {
      const std::string_view blamed = option_to_blame(section, {first, name});
      throw section.error(blamed, fmt::format("{} is given, too", blamed == name ? first : name),
                          "Gradients are clipped in one way: leave out all of clip_global_norm, clip_norm, "
                          "clip_average_norm and clip_value but one.");
    }
    first = name;
    rule.by = by;
  };
  const auto limit = [&](ClipRule::By by, std::string_view name, const std::optional<double>& norm) {
    if (!norm) return;
    choose(by, name);
    rule.limit = *norm;
  };
  limit(ClipRule::By::global_norm, option_name<&Options::clip_global_norm>(section),
        options.clip_global_norm);
  limit(ClipRule::By::norm, option_name<&Options::clip_norm>(section), options.clip_norm);
  limit(ClipRule::By::average_norm, option_name<&Options::clip_average_norm>(section),
        options.clip_average_norm);
  if (options.clip_value) {
    choose(ClipRule::By::value, option_name<&Options::clip_value>(section));
    read_range(section, *options.clip_value, rule);
  }
  return rule;
}

}  // namespace lockstep
