// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A group of MPI processes. Only the .cpp files include mpi.h.
//
// The MPI communicator of an object is used again by later objects (mpi_group.h): freeing it would be a
// collective call, and a destructor must not wait for other ranks.
#pragma once

#include "comm/communicator.h"
#include "comm/host_communicator.h"

namespace lockstep {

class MpiGroup;

class MpiCommunicator final : public Communicator {
 public:
  /// Collective. A message space of its own for the ranks of `host`, as MpiGroup::root() makes it.
  static std::unique_ptr<MpiCommunicator> of(HostCommunicator host, std::string name);
  ~MpiCommunicator() override;

  std::unique_ptr<Communicator> duplicate(std::string name) override;
  std::unique_ptr<Communicator> split_by_host(std::string name) override;
  /// Collective. Creates a group of the ranks that give the same `color`, in the order of this group.
  std::unique_ptr<Communicator> split(int color, std::string name);
  /// Collective. A barrier for waits of any length: it sleeps between two looks, so that the processor is
  /// free for ranks that compute.
  void sleeping_barrier(const char* what);
  [[noreturn]] void abort(int code) noexcept override;

  MpiGroup& group();

  /// The size above which messages are split, the same on all ranks. The default is 2^30 bytes; MPI's limit
  /// is 2^31 - 1.
  void set_max_message_bytes(std::size_t bytes);

 private:
  struct Native;
  MpiCommunicator(std::unique_ptr<Native> native, int rank, int size, std::string name);
  static std::unique_ptr<MpiCommunicator> wrap(MpiGroup& group, std::string name,
                                               std::size_t max_message_bytes);

  void do_exchange(const void* send, std::size_t send_bytes, int to, void* recv, std::size_t recv_bytes,
                   int from, const char* what) override;
  void do_exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes, int peer,
                          void* ring, std::size_t piece_bytes, Arrived arrived, const char* what) override;
  void do_exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in,
                        const char* what) override;
  void do_allgather(const void* mine, std::size_t bytes, void* all, const char* what) override;
  void do_broadcast(void* data, std::size_t bytes, int root, const char* what) override;
  void do_barrier(const char* what) override;
  void do_allreduce_sum_fast(float* data, std::size_t count, const char* what) override;

  void check(int code, const char* call, const char* what);
  void post_receive(void* data, std::size_t bytes, int from, const char* what);
  void post_send(const void* data, std::size_t bytes, int to, const char* what);
  void finish(const char* what);

  std::unique_ptr<Native> native_;
};

}  // namespace lockstep
