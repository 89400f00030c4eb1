// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process may use: that of the host, or less where a control group limits it (a
// container, a job of Slurm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// The bytes that this process may use, together with the other processes of the group; 0 if the system does
/// not report it.
std::size_t usable_memory_bytes();

/// The lowest limit of the groups that `cgroups`, the text of /proc/self/cgroup, names and of those above
/// them, version 1 or 2, mounted at `root`; empty: none.
std::optional<std::int64_t> cgroup_memory_limit(std::string_view cgroups, const std::string& root);

}  // namespace lockstep
