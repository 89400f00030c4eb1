// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Nonblocking NCCL: no call waits for other ranks inside the library, so every wait here has a time limit.
// The destructor aborts instead of finalising, because finalising waits for the other ranks; a group is
// destroyed only when its work is done or lost.
#include "comm/nccl_communicator.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr double kInitSeconds = 300;  // until all ranks of a large job have joined
constexpr double kCallSeconds = 60;   // until a call that needs no other rank is accepted

cudaStream_t cuda_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(Communicator& bootstrap, Device& device, void* stream, std::string name)
      : DeviceCommunicator(bootstrap.rank(), bootstrap.size(), std::move(name)), stream_(stream) {
    device.synchronize(stream);  // makes the device current in this thread
    // Rank 0 also sends its status, so that no rank waits if creating the id has failed.
    struct {
      ncclUniqueId id;
      ncclResult_t result;
    } start{};
    if (rank() == 0) start.result = ncclGetUniqueId(&start.id);
    bootstrap.broadcast(&start, sizeof start, 0, "NCCL's id");
    throw_unless_success(start.result, "creating the id");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    finish(ncclCommInitRankConfig(&comm_, size(), start.id, rank(), &config), kInitSeconds,
           "joining the other ranks");
  }

  ~NcclCommunicator() override {
    if (comm_ != nullptr) (void)ncclCommAbort(comm_);
  }

  void* stream() const override { return stream_; }

  void check() override {
    ncclResult_t state = ncclSuccess;
    throw_unless_success(ncclCommGetAsyncError(comm_, &state), "querying errors");
    if (state != ncclInProgress) throw_unless_success(state, "a pending call");
  }

  std::unique_ptr<Communicator> duplicate(std::string) override {
    LOCKSTEP_CHECK(false, "'{}' belongs to one stream and cannot be duplicated", name());
    return nullptr;
  }
  std::unique_ptr<Communicator> split_by_host(std::string) override {
    LOCKSTEP_CHECK(false, "'{}' cannot be split", name());
    return nullptr;
  }
  [[noreturn]] void abort(int code) noexcept override { std::_Exit(code); }

 private:
  void throw_unless_success(ncclResult_t result, const char* doing) const {
    if (result == ncclSuccess) return;
    throw Error(ErrorKind::communication,
                fmt::format("NCCL, group '{}', rank {} of {}: {} failed: {}: {}", name(), rank(), size(),
                            doing, ncclGetErrorString(result), ncclGetLastError(comm_)),
                "", "Set NCCL_DEBUG=INFO in the environment to log NCCL's view.");
  }

  /// Waits until the library has accepted a call.
  void finish(ncclResult_t result, double limit, const char* doing) {
    const auto begin = std::chrono::steady_clock::now();
    for (int turn = 0; result == ncclInProgress; ++turn) {
      const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
      throw_unless_success(asked, doing);
      if (result != ncclInProgress) break;
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      LOCKSTEP_REQUIRE(waited.count() < limit, ErrorKind::communication,
                       "NCCL, group '{}', rank {} of {}: {} took more than {} s", name(), rank(), size(),
                       doing, limit);
      if (turn > 100) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    throw_unless_success(result, doing);
  }
  void call(ncclResult_t result, const char* what) { finish(result, kCallSeconds, what); }

  void do_exchange(const void* send, std::size_t send_bytes, int to, void* recv, std::size_t recv_bytes,
                   int from, const char* what) override {
    const OutMessage out{send, send_bytes, to};
    const InMessage in{recv, recv_bytes, from};
    do_exchange_many({&out, 1}, {&in, 1}, what);
  }

  // The pieces are in stream order; a ring slot is reused after the work that reads it.
  void do_exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes, int peer,
                          void* ring, std::size_t piece_bytes, Arrived arrived, const char* what) override {
    const std::size_t most = std::max(send_bytes, recv_bytes);
    for (std::size_t at = 0, slot = 0; at < most; at += piece_bytes, slot = (slot + 1) % kRingPieces) {
      const std::size_t out_bytes = at < send_bytes ? std::min(piece_bytes, send_bytes - at) : 0;
      const std::size_t in_bytes = at < recv_bytes ? std::min(piece_bytes, recv_bytes - at) : 0;
      void* piece = static_cast<char*>(ring) + slot * piece_bytes;
      do_exchange(static_cast<const char*>(send) + at, out_bytes, peer, piece, in_bytes, peer, what);
      if (in_bytes > 0) arrived(at, piece, in_bytes);
    }
  }

  void do_exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in,
                        const char* what) override {
    call(ncclGroupStart(), what);
    // ncclGroupEnd() must be called and reports the errors of the calls in the group.
    for (const OutMessage& message : out)
      if (message.bytes > 0)
        (void)ncclSend(message.data, message.bytes, ncclChar, message.to, comm_, cuda_stream(stream_));
    for (const InMessage& message : in)
      if (message.bytes > 0)
        (void)ncclRecv(message.data, message.bytes, ncclChar, message.from, comm_, cuda_stream(stream_));
    call(ncclGroupEnd(), what);
  }

  void do_allgather(const void* mine, std::size_t bytes, void* all, const char* what) override {
    call(ncclAllGather(mine, all, bytes, ncclChar, comm_, cuda_stream(stream_)), what);
  }
  void do_broadcast(void* data, std::size_t bytes, int root, const char* what) override {
    call(ncclBroadcast(data, data, bytes, ncclChar, root, comm_, cuda_stream(stream_)), what);
  }
  void do_barrier(const char*) override {
    LOCKSTEP_CHECK(false, "'{}' has no barrier: ranks synchronise on the host", name());
  }
  void do_allreduce_sum_fast(float* data, std::size_t count, const char* what) override {
    call(ncclAllReduce(data, data, count, ncclFloat, ncclSum, comm_, cuda_stream(stream_)), what);
  }

  void* stream_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> make_nccl_communicator(Communicator& bootstrap, Device& device,
                                                           void* stream, std::string name) {
  return std::make_unique<NcclCommunicator>(bootstrap, device, stream, std::move(name));
}

std::string nccl_library_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "NCCL of an unknown version";
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep
