// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared memory that killed processes have left on the hosts of the ranks.
#include <fmt/format.h>

#include "comm/left_segments.h"
#include "comm/share_text.h"
#include "tools/doctor/finding.h"

namespace lockstep {

namespace {

constexpr char kRemoved = 'r', kLeft = 'l';

/// What the first rank of a host finds there; empty: nothing, or another rank looks. Its first character says
/// what became of the segments.
std::string look(const CommEnvironment& environment, bool remove) {
  if (place_on_host(environment).rank != 0) return {};
  std::vector<LeftSegment> segments = left_segments(segment_folders(process_environment));
  if (segments.empty()) return {};
  const std::string text = segments_text(segments);
  return (remove && remove_segments(segments).empty() ? kRemoved : kLeft) + text;
}

}  // namespace

Findings check_segments(CommEnvironment& environment, bool remove) {
  const std::vector<std::string> all =
      gather_texts(environment.world(), look(environment, remove), "doctor: segments");
  Findings findings;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const bool removed = all[rank].front() == kRemoved;
    findings.push_back(
        {removed ? Finding::State::good : Finding::State::warning, "segments",
         fmt::format("{}: {}", environment.hosts()[rank], all[rank].substr(1)) + (removed ? "; removed" : ""),
         removed  ? ""
         : remove ? "They could not be removed."
                  : "Left by processes that were killed; they take memory until the host is "
                    "started again. Remove them: lockstep doctor --clean."});
  }
  if (findings.empty())
    findings.push_back({Finding::State::good, "segments", "killed processes have left no shared memory"});
  return findings;
}

}  // namespace lockstep
