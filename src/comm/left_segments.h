// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared memory that killed processes have left on this host. Open MPI, UCX and NCCL keep segments for the
// ranks of a host as files in /dev/shm. Each removes its own at its end, but not after SIGKILL: then they
// take memory until the host is started again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/process_environment.h"

namespace lockstep {

struct LeftSegment {
  std::string path;
  std::uint64_t bytes = 0;
};

/// True for the name of a file that one of these libraries makes on this host. Open MPI's names have the
/// host's: a folder that containers share has those of other hosts, too.
bool is_segment_name(std::string_view name, std::string_view host);

/// Where segments are: /dev/shm, and where Open MPI's variables say.
std::vector<std::string> segment_folders(GetEnv get_env);

/// A segment that is younger may belong to a process that has not mapped it yet.
inline constexpr double kSettledSeconds = 60;

/// The segments of this user in these folders, at least `settled_seconds` old, that no process of this host
/// has mapped. Processes of other containers are not seen.
std::vector<LeftSegment> left_segments(const std::vector<std::string>& folders,
                                       double settled_seconds = kSettledSeconds);

/// True if left_segments() sees every process that could have mapped a segment of this user in /dev/shm, also
/// those of containers: this is the first PID namespace of the system, no process is hidden, and the memory
/// of each process of this user may be looked at. Otherwise a container may use what seems to be left.
/// `proc`: the folder of the processes.
bool sees_all_processes(const std::string& proc = "/proc");
/// Those in /dev/shm: other folders may be shared with another system.
std::vector<LeftSegment> in_shared_memory(const std::vector<LeftSegment>& segments);

/// "2 segments of shared memory, 8.4 MB: /dev/shm/vader_segment.n01.1000.5c4b0001.0, ...".
std::string segments_text(const std::vector<LeftSegment>& segments);

/// Returns those that could not be removed.
std::vector<LeftSegment> remove_segments(const std::vector<LeftSegment>& segments);

}  // namespace lockstep
