// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/events/event_tags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "core/error.h"

namespace lockstep {

namespace fs = std::filesystem;

EventTags::EventTags(const std::string& patterns) {
  for (std::size_t begin = 0; begin < patterns.size();) {
    const std::size_t end = std::min(patterns.find(',', begin), patterns.size());
    if (end > begin) patterns_.emplace_back(patterns.substr(begin, end - begin));
    begin = end + 1;
  }
}

bool EventTags::chooses(const std::string& tag) const {
  return all() || std::ranges::any_of(patterns_, [&](const NamePattern& pattern) {
           return pattern.text() == tag || pattern.matches(tag);
         });
}

std::vector<fs::path> find_event_files(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code code, ignored;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, code), end;
  for (; !code && at != end; at.increment(code))
    if (at->path().filename().string().find("tfevents") != std::string::npos && at->is_regular_file(ignored))
      found.push_back(at->path());
  if (code) throw Error(ErrorKind::data, "cannot list the folder: " + code.message(), folder);
  if (found.empty())
    throw Error(ErrorKind::data, "holds no event files", folder,
                "Give a run directory or an event file (events.out.tfevents...).");
  std::sort(found.begin(), found.end());
  return found;
}

double shortest_double(double value) {
  return std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr);
}

}  // namespace lockstep
