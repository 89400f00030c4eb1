// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "core/cpu.h"
#include "core/error.h"
#include "core/scalar.h"
#include "core/sizes.h"

namespace lockstep {

namespace {

/// The number in a file; empty if it is not there, or "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (!(file >> text)) return std::nullopt;
  return parse_integer(text);
}

void lower(std::optional<std::int64_t>& limit, std::optional<std::int64_t> other) {
  if (other && *other > 0 && (!limit || *other < *limit)) limit = other;
}

}  // namespace

std::optional<std::int64_t> cgroup_memory_limit(std::string_view cgroups, const std::string& root) {
  std::optional<std::int64_t> limit;
  std::istringstream lines{std::string(cgroups)};
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    const bool is_second_version = second == first + 1;
    bool is_of_memory = is_second_version;
    for (std::string name; std::getline(controllers, name, ',');) is_of_memory |= name == "memory";
    if (!is_of_memory) continue;
    const std::string file = is_second_version ? "/memory.max" : "/memory.limit_in_bytes";
    const std::string base = root + (is_second_version ? "" : "/memory");
    std::string group = line.substr(second + 1);
    for (;;) {
      lower(limit, number_in(base + group + file));
      if (group.empty()) break;
      group.erase(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
    }
  }
  return limit;
}

std::size_t usable_memory_bytes() {
  std::ifstream file("/proc/self/cgroup");
  const std::string cgroups{std::istreambuf_iterator<char>(file), {}};
  std::size_t most = std::numeric_limits<std::size_t>::max();
  if (const std::size_t of_host = physical_memory_bytes(); of_host > 0) most = of_host;
  if (const std::optional<std::int64_t> of_group = cgroup_memory_limit(cgroups, "/sys/fs/cgroup"))
    most = std::min(most, static_cast<std::size_t>(*of_group));
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    most = std::min(most, static_cast<std::size_t>(addresses.rlim_cur));
  return most == std::numeric_limits<std::size_t>::max() ? 0 : most;
}

GrowthLimit::GrowthLimit() : most_(usable_memory_bytes() / 4) {
  if (most_ == 0) most_ = std::numeric_limits<std::size_t>::max();
}

void GrowthLimit::fail(std::string where, bool compressed) const {
  throw Error(
      ErrorKind::data,
      fmt::format("what was read up to here takes more than {}, a quarter of the memory that this process "
                  "may use",
                  size_text(static_cast<double>(most_))),
      std::move(where),
      compressed ? "A compressed file is unpacked into memory: unpack it (gzip -d), since a plain one "
                   "is read while it is used. One that should be small may be made to harm."
                 : "Use a machine with more memory, or fewer rows (rows: [first, last]).");
}

}  // namespace lockstep
