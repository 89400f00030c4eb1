// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Durations as people write them for a batch queue.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

/// Seconds, from "90s", "45m", "1.5h", "2d", "1:30:00" (hours, minutes, seconds) or "2-00:00:00" (days before
/// it). Nothing for any other text: a bare number, and two numbers, mean different things to different
/// queues.
std::optional<double> parse_duration(std::string_view text);

/// The forms above, for messages.
inline constexpr const char* kDurationForms = "90s, 45m, 1.5h, 2d, 1:30:00 or 2-00:00:00";

}  // namespace lockstep
