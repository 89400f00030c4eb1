// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Communicator: an abstract group of processes. SelfCommunicator is a group of one process; MpiCommunicator
// uses MPI.
//
// All ranks of a group make the same collective calls in the same order. One thread at a time uses a
// communicator; duplicate it for another thread or purpose. Sizes are in bytes (size_t); transfers above
// MPI's limit are split. `what` names the call for the flight recorder and for errors ("batch_norm bn1").
// Every failure throws Error(communication) with the library's error text. Destructors do not communicate.
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

  /// Sends to `to` and receives from `from` at the same time. The incoming message must have exactly
  /// `recv_bytes` bytes.
  void exchange(const void* send, std::size_t send_bytes, int to, void* recv, std::size_t recv_bytes,
                int from, const char* what);
  void send(const void* data, std::size_t bytes, int to, const char* what);
  void receive(void* data, std::size_t bytes, int from, const char* what);

  /// Like exchange() with `peer`, in pieces of `piece_bytes`. Calls arrived(offset, piece, bytes) for each
  /// piece, in order, while the next pieces are in transit. `ring` has room for kRingPieces pieces. Both
  /// ranks use the same `piece_bytes`.
  static constexpr int kRingPieces = 4;
  using Arrived = FunctionRef<void(std::size_t offset, const void* piece, std::size_t bytes)>;
  void exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes, int peer, void* ring,
                       std::size_t piece_bytes, Arrived arrived, const char* what);
  /// Sends and receives all messages at the same time. Messages between the same two ranks are matched in
  /// order.
  void exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in, const char* what);

  /// `all` receives size() times `bytes`, in rank order. `mine` may point at this rank's place in `all`.
  void allgather(const void* mine, std::size_t bytes, void* all, const char* what);
  void broadcast(void* data, std::size_t bytes, int root, const char* what);
  void barrier(const char* what);
  /// Work in memory that ranks share, such as a wait for another rank, or the use of what another rank has
  /// written: `bytes`. Recorded and counted like the other calls.
  void in_shared_memory(std::size_t bytes, FunctionRef<void()> work, const char* what);
  /// The sum of the library, in place: fast, but in an unspecified order. Used only if the user requests it.
  void allreduce_sum_fast(float* data, std::size_t count, const char* what);

  /// Collective. Creates a group of the same ranks with its own message space. `name` appears in errors.
  virtual std::unique_ptr<Communicator> duplicate(std::string name) = 0;
  /// Collective. Creates a group of the ranks of this host, in the order of this group.
  virtual std::unique_ptr<Communicator> split_by_host(std::string name) = 0;
  /// Ends all processes of the run at once, without cleanup.
  [[noreturn]] virtual void abort(int code) noexcept = 0;

  /// The bytes that this rank has sent and received through this communicator, and the time spent inside its
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
