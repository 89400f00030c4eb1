// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that all ranks of a host see: partial gradients of each rank (host_sum.h), one copy of data that all
// of them read. Each rank has a segment of its own, which may be empty, and maps those of the others.
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
  /// When pages are taken. A page that cannot be had when it is first used ends the process (SIGBUS).
  enum class Pages { at_once, by_reserve };
  /// Collective; all ranks of the group run on one host. `bytes` of this rank's segment, which may differ
  /// between ranks. The memory is initially zero, and aligned to a page. Null on all ranks if one of them
  /// can't get or open the memory; `reason` says which rank and why.
  static std::unique_ptr<HostMemory> create(Communicator& group, std::size_t bytes, std::string& reason,
                                            Pages pages = Pages::at_once);
  /// Unmaps the segments; does not communicate. Other ranks keep what they have mapped.
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// The segment of a rank of the group.
  std::byte* segment(int rank) const { return maps_[static_cast<std::size_t>(rank)].data; }
  std::size_t bytes(int rank) const { return maps_[static_cast<std::size_t>(rank)].bytes; }
  /// With Pages::by_reserve: takes the pages of [offset, offset + bytes) of a segment now. This rank alone.
  /// False: the host has no memory left.
  bool reserve(int rank, std::size_t offset, std::size_t bytes) const;
  /// All ranks: what each has written before is seen by all of them afterwards.
  static void publish(Communicator& group);

 private:
  struct Map {
    std::byte* data = nullptr;  ///< after a page that holds the random number
    std::size_t bytes = 0;
  };
  HostMemory() = default;

  std::vector<Map> maps_;
};

}  // namespace lockstep
