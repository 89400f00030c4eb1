// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A group of one process without MPI, for runs without a launcher (on a workstation, in a debugger).
#pragma once

#include "comm/communicator.h"

namespace lockstep {

class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(std::string name = "self") : Communicator(0, 1, std::move(name)) {}

  std::unique_ptr<Communicator> duplicate(std::string name) override;
  std::unique_ptr<Communicator> split_by_host(std::string name) override;
  [[noreturn]] void abort(int code) noexcept override;

 private:
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
};

}  // namespace lockstep
