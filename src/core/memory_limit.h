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

/// The bytes that this process may use, together with the other processes of the group, or of its address
/// space where that is limited (ulimit -v); 0 if the system does not report it.
std::size_t usable_memory_bytes();

/// How much memory may be taken for what a file has, whose size is known only at its end: a small compressed
/// one may unpack to any size. A quarter of the memory that this process may use, since lists that grow are
/// copied.
class GrowthLimit {
 public:
  GrowthLimit();
  bool allows(std::size_t bytes) const { return bytes <= most_; }
  /// Throws Error(data) for a file, or a line of one, up to which so much was found. `compressed`: it is.
  [[noreturn]] void fail(std::string where, bool compressed) const;

 private:
  std::size_t most_;
};

/// The lowest limit of the groups that `cgroups`, the text of /proc/self/cgroup, names and of those above
/// them, version 1 or 2, mounted at `root`; empty: none.
std::optional<std::int64_t> cgroup_memory_limit(std::string_view cgroups, const std::string& root);

}  // namespace lockstep
