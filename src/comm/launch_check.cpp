// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/launch_check.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "comm/startup_check.h"
#include "core/cpu.h"
#include "core/error.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "how the ranks were started";

/// What a rank knows of its start, in the form in which ranks exchange it.
struct Row {
  char host[64], cores[128];
  std::int32_t num_cores, host_cores;
  char foreign[600];
};

template <std::size_t N>
void put(char (&to)[N], const std::string& from) {
  std::memset(to, 0, N);
  std::memcpy(to, from.data(), std::min(N - 1, from.size()));
}

/// Empty if the file cannot be read: the launcher belongs to another user, or there is none.
std::string maps_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/maps");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The path of the mapped file whose name starts with `name`; empty if there is none.
std::string mapped_library(std::string_view maps, std::string_view name) {
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(maps.size(), line.size() + 1));
    const std::size_t path = line.find('/');
    if (path == std::string_view::npos) continue;
    const std::size_t file = line.rfind('/') + 1;
    if (line.substr(file).starts_with(name)) return std::string(line.substr(path));
  }
  return {};
}

}  // namespace

std::vector<std::string> shared_core_warnings(std::span<const RankCores> ranks) {
  std::map<std::pair<std::string, std::string>, std::vector<int>> sharers;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].num_cores < ranks[rank].host_cores)
      sharers[{ranks[rank].host, ranks[rank].cores}].push_back(static_cast<int>(rank));
  std::vector<std::string> warnings;
  for (const auto& [where, who] : sharers) {
    const int cores = ranks[static_cast<std::size_t>(who.front())].num_cores;
    if (static_cast<int>(who.size()) <= cores) continue;
    warnings.push_back(
        fmt::format("ranks {} on host {} share {} core{} ({}): give each rank its own cores "
                    "(srun --cpus-per-task=N --cpu-bind=cores, or mpirun --map-by slot:PE=N --bind-to core)",
                    rank_list(who), where.first, cores, cores == 1 ? "" : "s", where.second));
  }
  return warnings;
}

std::string foreign_launcher_warning(std::string_view maps_of_launcher, std::string_view own_maps) {
  constexpr std::string_view kLibrary = "libopen-pal.so";
  const std::string launcher = mapped_library(maps_of_launcher, kLibrary);
  const std::string own = mapped_library(own_maps, kLibrary);
  if (launcher.empty() || own.empty() || launcher == own) return {};
  return fmt::format(
      "two Open MPIs: mpirun uses {}, the program uses {}. The program may hang, or its ranks may not find "
      "each other: start it with the mpirun of its own library",
      launcher, own);
}

std::vector<std::string> launch_warnings(Communicator& world) {
  if (world.size() == 1) return {};
  Row mine{};
  put(mine.host, host_name());
  put(mine.cores, allowed_cores_text());
  mine.num_cores = available_cores();
  mine.host_cores = static_cast<std::int32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  put(mine.foreign, foreign_launcher_warning(maps_of(std::to_string(::getppid())), maps_of("self")));
  std::vector<Row> rows(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, rows.data(), kWhat);

  std::vector<RankCores> ranks;
  for (const Row& row : rows) ranks.push_back({row.host, row.cores, row.num_cores, row.host_cores});
  std::vector<std::string> warnings = shared_core_warnings(ranks);
  const auto foreign = std::ranges::find_if(rows, [](const Row& row) { return row.foreign[0] != '\0'; });
  if (foreign != rows.end()) warnings.emplace_back(foreign->foreign);
  return warnings;
}

}  // namespace lockstep
