// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <chrono>

#include "comm/flight_recorder.h"
#include "core/error.h"
#include "core/trace.h"

namespace lockstep {

// One call: open in the flight recorder during its lifetime, counted at its end, and noted for the arrows of
// a trace.
class Communicator::Call {
 public:
  /// A collective call.
  Call(Communicator& owner, const char* what, std::size_t bytes, int peer = -1)
      : owner_(owner), bytes_(bytes), recorded_(what, bytes, peer), traced_("communication", what) {}
  /// Messages, which outlive the call.
  Call(Communicator& owner, const char* what, std::size_t bytes, int peer, std::span<const OutMessage> out,
       std::span<const InMessage> in)
      : owner_(owner),
        bytes_(bytes),
        out_(out),
        in_(in),
        collective_(false),
        recorded_(what, bytes, peer),
        traced_("communication", what) {}
  ~Call() {
    const auto spent = std::chrono::steady_clock::now() - start_;
    owner_.nanoseconds_.fetch_add(
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()),
        std::memory_order_relaxed);
    owner_.bytes_moved_.fetch_add(bytes_, std::memory_order_relaxed);
    if (traced_.kept()) note_messages();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  void note_messages() const {
    TraceMessage message{
        .ranks = owner_.size_, .begin_ns = traced_.begin_ns(), .end_ns = trace_detail::now_ns()};
    const auto note = [&](TraceMessage::Kind kind, int from, int to) {
      message.kind = kind;
      message.from = from;
      message.to = to;
      trace_detail::record_message(owner_.name_.c_str(), message);
    };
    if (collective_) note(TraceMessage::Kind::joined, -1, -1);
    for (const OutMessage& out : out_) note(TraceMessage::Kind::sent, owner_.rank_, out.to);
    for (const InMessage& in : in_) note(TraceMessage::Kind::received, in.from, owner_.rank_);
  }

  Communicator& owner_;
  std::size_t bytes_;
  std::span<const OutMessage> out_;
  std::span<const InMessage> in_;
  bool collective_ = true;
  RecordedCall recorded_;
  Traced traced_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void Communicator::check_peer(int peer, const char* what) const {
  LOCKSTEP_CHECK(0 <= peer && peer < size_, "'{}' with rank {} in '{}', which has {} ranks", what, peer,
                 name_, size_);
}

void Communicator::exchange(const void* send, std::size_t send_bytes, int to, void* recv,
                            std::size_t recv_bytes, int from, const char* what) {
  check_peer(to, what);
  check_peer(from, what);
  const OutMessage out{send, send_bytes, to};
  const InMessage in{recv, recv_bytes, from};
  const Call call(*this, what, send_bytes + recv_bytes, from, {&out, 1}, {&in, 1});
  do_exchange(send, send_bytes, to, recv, recv_bytes, from, what);
}

void Communicator::send(const void* data, std::size_t bytes, int to, const char* what) {
  const OutMessage out{data, bytes, to};
  exchange_many({&out, 1}, {}, what);
}

void Communicator::receive(void* data, std::size_t bytes, int from, const char* what) {
  const InMessage in{data, bytes, from};
  exchange_many({}, {&in, 1}, what);
}

void Communicator::exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes, int peer,
                                   void* ring, std::size_t piece_bytes, Arrived arrived, const char* what) {
  check_peer(peer, what);
  LOCKSTEP_CHECK(piece_bytes > 0, "'{}'", what);
  const OutMessage out{send, send_bytes, peer};
  const InMessage in{ring, recv_bytes, peer};
  const Call call(*this, what, send_bytes + recv_bytes, peer, {&out, 1}, {&in, 1});
  do_exchange_pieces(send, send_bytes, recv_bytes, peer, ring, piece_bytes, arrived, what);
}

void Communicator::exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in,
                                 const char* what) {
  std::size_t bytes = 0;
  for (const OutMessage& message : out) {
    check_peer(message.to, what);
    bytes += message.bytes;
  }
  for (const InMessage& message : in) {
    check_peer(message.from, what);
    bytes += message.bytes;
  }
  const Call call(*this, what, bytes,
                  in.size() == 1    ? in.front().from
                  : out.size() == 1 ? out.front().to
                                    : -1,
                  out, in);
  do_exchange_many(out, in, what);
}

void Communicator::allgather(const void* mine, std::size_t bytes, void* all, const char* what) {
  const Call call(*this, what, 2 * bytes * static_cast<std::size_t>(size_ - 1));
  do_allgather(mine, bytes, all, what);
}

void Communicator::broadcast(void* data, std::size_t bytes, int root, const char* what) {
  check_peer(root, what);
  const Call call(*this, what, size_ == 1 ? 0 : bytes, root == rank_ ? -1 : root);
  do_broadcast(data, bytes, root, what);
}

void Communicator::barrier(const char* what) {
  const Call call(*this, what, 0);
  do_barrier(what);
}

void Communicator::in_shared_memory(std::size_t bytes, FunctionRef<void()> work, const char* what) {
  const Call call(*this, what, bytes);
  work();
}

void Communicator::allreduce_sum_fast(float* data, std::size_t count, const char* what) {
  const auto ranks = static_cast<std::size_t>(size_);
  const Call call(*this, what, 4 * (count * sizeof(float) / ranks) * (ranks - 1));
  do_allreduce_sum_fast(data, count, what);
}

}  // namespace lockstep
