// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How ranks talk: an abstract group of processes. SelfCommunicator is the group of one, MpiCommunicator is
// MPI's.
//
// All ranks of the group make the same collective calls in the same order; a communicator is used by one
// thread at a time (duplicate it for another thread or purpose). Sizes are bytes in size_t; what MPI cannot
// take at once is cut in pieces. `what` names the call for the flight recorder and for errors ("batch_norm
// bn1"). Every failure throws Error(communication) with the library's own text. Destructors never
// communicate.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/function_ref.h"

namespace lockstep {

struct OutMessage {
  const void* data;
  std::size_t bytes;
  int to;
};
struct InMessage {
  void* data;
  std::size_t bytes;
  int from;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }

  /// Sends to `to` and receives from `from` at once. What is received must be exactly `recv_bytes` long.
  void exchange(const void* send, std::size_t send_bytes, int to, void* recv, std::size_t recv_bytes,
                int from, const char* what);
  void send(const void* data, std::size_t bytes, int to, const char* what);
  void receive(void* data, std::size_t bytes, int from, const char* what);

  /// As exchange() with `peer`, in pieces of `piece_bytes`: arrived(offset, piece, bytes) is called for each
  /// piece, in order, while the next ones are under way. `ring` has room for kRingPieces pieces. Both sides
  /// use the same size.
  static constexpr int kRingPieces = 4;
  using Arrived = FunctionRef<void(std::size_t offset, const void* piece, std::size_t bytes)>;
  void exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes, int peer, void* ring,
                       std::size_t piece_bytes, Arrived arrived, const char* what);
  /// All messages at once; those between two ranks are matched in order.
  void exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in, const char* what);

  /// `all` receives size() times `bytes`, in rank order. `mine` may be the own place in `all`.
  void allgather(const void* mine, std::size_t bytes, void* all, const char* what);
  void broadcast(void* data, std::size_t bytes, int root, const char* what);
  void barrier(const char* what);
  /// The library's own sum, in place: fast, but in an order of its own (never used unless the user asks for
  /// it).
  void allreduce_sum_fast(float* data, std::size_t count, const char* what);

  /// Collective. The new group has its own message space; `name` appears in errors.
  virtual std::unique_ptr<Communicator> duplicate(std::string name) = 0;
  /// Collective. The ranks of this host, in the order of this group.
  virtual std::unique_ptr<Communicator> split_by_host(std::string name) = 0;
  /// Ends all processes of the run, at once, without cleaning up.
  [[noreturn]] virtual void abort(int code) noexcept = 0;

  /// Bytes that this rank sent and received through this communicator, and the time it spent inside its
  /// calls.
  std::uint64_t bytes_moved() const { return bytes_moved_.load(std::memory_order_relaxed); }
  double seconds_waited() const {
    return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
  }

 protected:
  Communicator(int rank, int size, std::string name) : rank_(rank), size_(size), name_(std::move(name)) {}

  virtual void do_exchange(const void* send, std::size_t send_bytes, int to, void* recv,
                           std::size_t recv_bytes, int from, const char* what) = 0;
  virtual void do_exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes, int peer,
                                  void* ring, std::size_t piece_bytes, Arrived arrived, const char* what) = 0;
  virtual void do_exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in,
                                const char* what) = 0;
  virtual void do_allgather(const void* mine, std::size_t bytes, void* all, const char* what) = 0;
  virtual void do_broadcast(void* data, std::size_t bytes, int root, const char* what) = 0;
  virtual void do_barrier(const char* what) = 0;
  virtual void do_allreduce_sum_fast(float* data, std::size_t count, const char* what) = 0;

 private:
  class Call;
  void check_peer(int peer, const char* what) const;

  int rank_, size_;
  std::string name_;
  std::atomic<std::uint64_t> bytes_moved_{0}, nanoseconds_{0};
};

}  // namespace lockstep
