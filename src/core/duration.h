// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Durations in the notations of batch queues.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

/// Parses a duration and returns seconds: "90s", "45m", "1.5h", "2d", "1:30:00" (hours, minutes, seconds) or
/// "2-00:00:00" (with days in front). Returns nothing for any other text. A bare number and two numbers
/// ("1:30") are refused because batch queues interpret them differently.
std::optional<double> parse_duration(std::string_view text);

/// The accepted forms, for messages.
inline constexpr const char* kDurationForms = "90s, 45m, 1.5h, 2d, 1:30:00 or 2-00:00:00";

}  // namespace lockstep
