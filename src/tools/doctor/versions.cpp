// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Program, libraries and instruction set of each rank: a run needs the same on all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "comm/share_text.h"
#include "comm/startup_check.h"
#include "core/cpu.h"
#include "core/version.h"
#include "io/library_versions.h"
#include "kernels/backend.h"
#include "tools/doctor/finding.h"

namespace lockstep {

PlaceOnHost place_on_host(const CommEnvironment& environment) {
  const std::vector<std::string>& hosts = environment.hosts();
  const int rank = const_cast<CommEnvironment&>(environment).world().rank();
  PlaceOnHost place{0, 0};
  for (std::size_t other = 0; other < hosts.size(); ++other)
    if (hosts[other] == hosts[static_cast<std::size_t>(rank)]) {
      if (static_cast<int>(other) < rank) ++place.rank;
      ++place.ranks;
    }
  return place;
}

namespace {

/// "0.1.0 on ranks 0-1, 0.2.0 on rank 2 (host b)".
std::string by_rank(const std::vector<std::string>& values, const std::vector<std::string>& hosts) {
  std::vector<std::string> parts, seen;
  for (const std::string& value : values) {
    if (std::ranges::find(seen, value) != seen.end()) continue;
    seen.push_back(value);
    std::vector<int> ranks;
    std::vector<std::string> places;
    for (std::size_t rank = 0; rank < values.size(); ++rank)
      if (values[rank] == value) {
        ranks.push_back(static_cast<int>(rank));
        if (std::ranges::find(places, hosts[rank]) == places.end()) places.push_back(hosts[rank]);
      }
    parts.push_back(fmt::format("{} on rank{} {} ({})", value, ranks.size() == 1 ? "" : "s", rank_list(ranks),
                                fmt::join(places, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

Findings check_versions(CommEnvironment& environment) {
  struct Field {
    std::string name, value, advice;
  };
  const std::string install =
      "Install the same build on all hosts, and start it by the same path: docs/installing.md.";
  const Field fields[] = {
      {"lockstep", fmt::format("{} ({})", kVersion, kBuild), install},
      {"MPI", mpi_library_version(), "Use one MPI on all hosts: that of mpirun and that of the program."},
      {"HDF5", hdf5_library_version(), install},
      {"primitives", primitive_library_version(DType::bf16), install},
      {"instructions", name_of(isa_level()),
       "Set LOCKSTEP_ISA to the smallest of these on all ranks (mpirun -x LOCKSTEP_ISA=avx2)."},
  };
  Findings findings;
  for (const Field& field : fields) {
    const std::vector<std::string> values =
        gather_texts(environment.world(), field.value, "doctor: versions");
    const bool same = std::ranges::adjacent_find(values, std::not_equal_to<>()) == values.end();
    std::string text = same ? field.value : by_rank(values, environment.hosts());
    if (same && field.name == "MPI" && environment.uses_mpi())
      text += fmt::format("; threads: {}", environment.thread_level());
    if (same && field.name == "MPI" && !environment.uses_mpi())
      text += "; not used: no mpirun or srun started this";
    findings.push_back({same ? Finding::State::good : Finding::State::failure, field.name, text,
                        same ? "" : "All ranks of a run need the same. " + field.advice});
  }
  return findings;
}

}  // namespace lockstep
