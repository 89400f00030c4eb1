// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a resumed run does to the event files of earlier attempts: it removes the records that it will write
// again, so that each record exists once: those of later steps, and what each job writes anew at its start
// (the graph, HParams, the configuration of the same step). One process, which holds the run directory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// The tag of the configuration as text.
inline constexpr const char* kConfigurationTag = "configuration";

/// Removes records of steps above `step` from the event files in `folder` (not below it), atomically, and
/// files that are then empty. Also removes a last record that a killed run left incomplete. Other files and
/// symbolic links stay as they are. `not_due`: tags whose numbers of `step` itself go, too. Returns whether
/// anything was removed. A file that cannot be read or written stays as it is, with a warning.
bool drop_events_after(const std::string& folder, std::int64_t step,
                       std::span<const std::string> not_due = {});

}  // namespace lockstep
