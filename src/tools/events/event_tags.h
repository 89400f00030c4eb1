// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep events --tag` chooses: tags by patterns, separated by commas.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/name_pattern.h"

namespace lockstep {

class EventTags {
 public:
  /// The patterns of tags; empty: all tags. Throws Error(usage) for a pattern that is not valid.
  explicit EventTags(const std::string& patterns);
  bool chooses(const std::string& tag) const;
  bool all() const { return patterns_.empty(); }

 private:
  std::vector<NamePattern> patterns_;
};

/// The event files in a folder and below, sorted. Throws Error(data) if there is none.
std::vector<std::filesystem::path> find_event_files(const std::string& folder);
/// A float32 with the digits that it has, not those of the double equal to it.
double shortest_double(double value);

}  // namespace lockstep
