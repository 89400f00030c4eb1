// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared memory that killed processes have left on the hosts of the ranks.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "comm/left_segments.h"
#include "comm/share_text.h"
#include "tools/doctor/finding.h"

namespace lockstep {

namespace {

constexpr char kRemoved = 'r', kLeft = 'l';

/// What the first rank of a host finds there, a line each for what it has removed and what is left; empty:
/// nothing, or another rank looks.
std::string look(const CommEnvironment& environment, bool remove) {
  if (place_on_host(environment).rank != 0) return {};
  std::vector<LeftSegment> removed, left = left_segments(segment_folders(process_environment));
  std::vector<LeftSegment> chosen;
  if (remove)
    chosen = left;
  else if (!left.empty() && sees_all_processes())
    chosen = in_shared_memory(left);
  const std::vector<LeftSegment> kept = remove_segments(chosen);
  const auto is_in = [](const std::vector<LeftSegment>& list, const LeftSegment& segment) {
    return std::ranges::find(list, segment.path, &LeftSegment::path) != list.end();
  };
  std::ranges::copy_if(chosen, std::back_inserter(removed),
                       [&](const LeftSegment& segment) { return !is_in(kept, segment); });
  std::erase_if(left, [&](const LeftSegment& segment) { return is_in(removed, segment); });
  std::string text;
  if (!removed.empty()) text += kRemoved + segments_text(removed) + '\n';
  if (!left.empty()) text += kLeft + segments_text(left) + '\n';
  return text;
}

}  // namespace

Findings check_segments(CommEnvironment& environment, bool remove) {
  const std::vector<std::string> all =
      gather_texts(environment.world(), look(environment, remove), "doctor: segments");
  Findings findings;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream lines(all[rank]);
    for (std::string line; std::getline(lines, line);) {
      const bool removed = line.front() == kRemoved;
      findings.push_back(
          {removed ? Finding::State::good : Finding::State::warning, "segments",
           fmt::format("{}: {}", environment.hosts()[rank], line.substr(1)) +
               (removed ? "; left by processes that were killed, removed" : ""),
           removed ? ""
           : remove
               ? "They could not be removed."
               : "Processes that were killed have left them, as far as this process sees: another "
                 "container may use them. They take memory until the host is started again. Remove them: "
                 "lockstep doctor --clean."});
    }
  }
  if (findings.empty())
    findings.push_back({Finding::State::good, "segments", "killed processes have left no shared memory"});
  return findings;
}

}  // namespace lockstep
