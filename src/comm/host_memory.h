// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that all ranks of a host see. Each rank has a segment of its own, which it fills and the others map.
//
// A segment is a memfd: it has no name in any file system and no limit but the memory, and it goes away with
// the last process that maps it, however that ends. The other ranks open it through /proc/<pid>/fd. A random
// number in each segment shows that it is the one that was meant (processes of separate PID namespaces have
// equal numbers).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

class HostMemory {
 public:
  /// Collective; all ranks of the group run on one host. `bytes` of this rank's segment, which may differ
  /// between ranks. The memory is reserved, initially zero, and aligned to a page. Null on all ranks if one
  /// of them can't get or open the memory; `reason` says which rank and why.
  static std::unique_ptr<HostMemory> create(Communicator& group, std::size_t bytes, std::string& reason);
  /// Unmaps the segments; does not communicate. Other ranks keep what they have mapped.
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// The segment of a rank of the group.
  std::byte* segment(int rank) const { return maps_[static_cast<std::size_t>(rank)].data; }
  std::size_t bytes(int rank) const { return maps_[static_cast<std::size_t>(rank)].bytes; }

 private:
  struct Map {
    std::byte* data = nullptr;  ///< after a page that holds the random number
    std::size_t bytes = 0;
  };
  HostMemory() = default;

  std::vector<Map> maps_;
};

}  // namespace lockstep
