// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/duration.h"

#include <array>
#include <cmath>

#include "core/scalar.h"

namespace lockstep {

namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86400;

/// "30m": a non-negative number with a unit.
std::optional<double> with_unit(std::string_view text) {
  const std::optional<double> number = parse_real(text.substr(0, text.size() - 1));
  if (!number || !std::isfinite(*number) || *number < 0) return std::nullopt;
  switch (text.back()) {
    case 's':
      return *number;
    case 'm':
      return *number * kMinute;
    case 'h':
      return *number * kHour;
    case 'd':
      return *number * kDay;
  }
  return std::nullopt;
}

std::optional<std::int64_t> digits(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return parse_integer(text);
}

/// "1:30:00". Minutes and seconds are below 60; with days in front, hours are below 24.
std::optional<double> clock_time(std::string_view text, bool after_days) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const std::array parts{digits(text.substr(0, first)), digits(text.substr(first + 1, second - first - 1)),
                         digits(text.substr(second + 1))};
  for (const auto& part : parts)
    if (!part) return std::nullopt;
  if (*parts[1] >= 60 || *parts[2] >= 60 || (after_days && *parts[0] >= 24)) return std::nullopt;
  return static_cast<double>(*parts[0]) * kHour + static_cast<double>(*parts[1]) * kMinute +
         static_cast<double>(*parts[2]);
}

}  // namespace

std::optional<double> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.find(':') == std::string_view::npos) return with_unit(text);
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return clock_time(text, false);
  const std::optional<std::int64_t> days = digits(text.substr(0, dash));
  const std::optional<double> rest = clock_time(text.substr(dash + 1), true);
  if (!days || !rest) return std::nullopt;
  return static_cast<double>(*days) * kDay + *rest;
}

}  // namespace lockstep
