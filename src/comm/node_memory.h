// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that the ranks of a host have in common: an MPI shared window. One copy of what all of them read.
//
// MPI's window lives until MPI_Finalize, because freeing it would be a collective call, and a destructor must
// not wait for other ranks. Its pages do not: the last rank that drops the memory gives them back.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace lockstep {

class NodeMemory {
 public:
  /// All ranks of `host`, which is a group of one host (Communicator::split_by_host()), with the same
  /// `bytes`. Null on all of them if this rank is alone, or if the host has no room in shared memory: then
  /// `no_room` says why.
  static std::unique_ptr<NodeMemory> create(Communicator& host, std::size_t bytes, std::string& no_room);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Begins at a page of its own.
  void* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }
  /// Takes the pages of [offset, offset + bytes) now, so that a host without room is an Error(data) instead
  /// of the signal SIGBUS at a later write. This rank alone.
  void reserve(std::size_t offset, std::size_t bytes) const;
  /// All ranks: what each has written before is seen by all of them afterwards.
  static void publish(Communicator& host);

 private:
  struct Header;
  NodeMemory(void* window, std::size_t bytes, int ranks);

  Header* header_;
  void* data_;
  std::size_t bytes_;
  int ranks_;
};

}  // namespace lockstep
