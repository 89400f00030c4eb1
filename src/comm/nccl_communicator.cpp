// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Nonblocking NCCL: no call waits for other ranks inside the library, so every wait here has a time limit.
// The destructor aborts instead of finalising, because finalising waits for the other ranks; a group is
// destroyed only when its work is done or lost. An error ends all groups of the process before it is thrown:
// a GPU frees no memory while a kernel of NCCL waits for a lost rank.
//
// Two groups on two streams deadlock if their kernels start in different orders on two GPUs that have no room
// for both. The host makes all calls in the same order on all ranks, so kernels start in the host's order:
// NCCL 2.26 and later does that on request; for older ones a group waits for the last call of the other.
#include "comm/nccl_communicator.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/poll_pause.h"
#include "core/buffer.h"
#include "core/error.h"

// Missing in older libraries, which may be found in place of the one that the program was built with. They
// are called if ncclGetVersion() says that they exist.
#pragma weak ncclCommRegister
#pragma weak ncclCommDeregister
#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#pragma weak ncclCommWindowRegister

namespace lockstep {

namespace {

constexpr double kInitSeconds = 300;  // until all ranks of a large job have joined
constexpr double kCallSeconds = 60;   // until a call that needs no other rank is accepted

// The first versions with NCCL_LAUNCH_ORDER_IMPLICIT, registered buffers, and symmetric memory.
constexpr int kImplicitOrder = 22600, kRegisters = 21900, kSymmetric = 22700;
constexpr std::size_t kMessageAlignment = 256, kMessageBlock = std::size_t{4} << 20;

cudaStream_t cuda_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

/// Before the first call of NCCL, which reads its variables once. The user's own value stays.
void request_launch_order() {
  static const int failed = setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  LOCKSTEP_REQUIRE(failed == 0, ErrorKind::communication, "NCCL's launch order could not be set");
}

int library_version() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

/// Puts the calls of all groups of a GPU in the host's order, for a NCCL that does not. One thread calls.
class LaunchOrder {
 public:
  /// Before a call on `stream`: it runs after the last call on another stream.
  void before(Device& device, void* stream) {
    if (last_ != nullptr && last_ != stream) done_->stream_wait(stream);
    if (done_ == nullptr) done_ = std::make_unique<DeviceEvent>(device);
  }
  void after(void* stream) {
    done_->record(stream);
    last_ = stream;
  }
  void forget(const void* stream) {
    if (last_ != stream) return;
    last_ = nullptr;
    done_.reset();
  }

 private:
  void* last_ = nullptr;
  std::unique_ptr<DeviceEvent> done_;
};
LaunchOrder& launch_order() {
  static auto* order = new LaunchOrder;
  return *order;
}

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(Communicator& bootstrap, Device& device, void* stream, std::string name)
      : DeviceCommunicator(bootstrap.rank(), bootstrap.size(), std::move(name)),
        device_(device),
        stream_(stream) {
    request_launch_order();
    version_ = library_version();
    orders_ = version_ < kImplicitOrder;
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
    living_ = std::make_shared<ncclComm_t>(comm_);
  }

  ~NcclCommunicator() override {
    launch_order().forget(stream_);
    abandon();
#if NCCL_VERSION_CODE >= 22700
    for (void* const block : window_memory_) (void)ncclMemFree(block);
#endif
  }

  void abandon() noexcept override {
    living_.reset();
    if (comm_ != nullptr) (void)ncclCommAbort(std::exchange(comm_, nullptr));
  }

  void* message_memory(std::size_t bytes) override {
    bytes = (bytes + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment;
    if (bytes > block_left_) {
      block_left_ = std::max(bytes, kMessageBlock);
      block_ = new_block(block_left_);
    }
    block_left_ -= bytes;
    return std::exchange(block_, block_ + bytes);
  }

  std::shared_ptr<void> register_memory([[maybe_unused]] void* memory,
                                        [[maybe_unused]] std::size_t bytes) override {
    require_living();
#if NCCL_VERSION_CODE >= 21900
    if (version_ < kRegisters || bytes == 0) return nullptr;
    void*& handle = handles_.emplace_back(nullptr);
    finish(ncclCommRegister(comm_, memory, bytes, &handle), limit_, "registering memory");
    if (handle == nullptr) return nullptr;
    return {handle, [living = std::weak_ptr(living_)](void* registered) {
              if (const auto comm = living.lock()) (void)ncclCommDeregister(*comm, registered);
            }};
#else
    return nullptr;
#endif
  }

  void connect(const Uses& uses) override {
    const std::size_t bytes = std::max(static_cast<std::size_t>(size()), sizeof(float));
    Buffer sent(device_, bytes), received(device_, bytes);
    std::vector<OutMessage> out;
    std::vector<InMessage> in;
    for (const int peer : uses.peers) {
      out.push_back({sent.as<char>().data() + peer, 1, peer});
      in.push_back({received.as<char>().data() + peer, 1, peer});
    }
    limit_ = kInitSeconds;
    if (!out.empty()) exchange_many(out, in, "connecting to the peers");
    allgather(sent.data(), 1, received.data(), "connecting all ranks");
    if (uses.allreduces) allreduce_sum_fast(sent.as<float>().data(), 1, "connecting all ranks");
    finish_stream("connecting to the other ranks");
    limit_ = kCallSeconds;
  }

  void* stream() const override { return stream_; }

  void check() override {
    require_living();
    ncclResult_t state = ncclSuccess;
    throw_unless_success(ncclCommGetAsyncError(comm_, &state), "querying errors");
    if (state != ncclInProgress) throw_unless_success(state, "a pending call");
  }

 private:
  void throw_unless_success(ncclResult_t result, const char* doing) const {
    if (result == ncclSuccess) return;
    fail(fmt::format("{} failed: {}: {}", doing, ncclGetErrorString(result), ncclGetLastError(comm_)));
  }
  void require_living() const {
    if (comm_ == nullptr) fail("the group has ended after an error");
  }
  [[noreturn]] void fail(const std::string& what) const {
    abandon_device_communicators();
    throw Error(ErrorKind::communication,
                fmt::format("NCCL, group '{}', rank {} of {}: {}", name(), rank(), size(), what), "",
                "Set NCCL_DEBUG=INFO in the environment to log NCCL's view.");
  }

  /// Zeroed memory for messages; symmetric if this NCCL has such, which falls back to plain memory by itself.
  std::byte* new_block(std::size_t bytes) {
#if NCCL_VERSION_CODE >= 22700
    if (version_ >= kSymmetric) {
      require_living();
      void* block = nullptr;
      throw_unless_success(ncclMemAlloc(&block, bytes), "allocating memory for messages");
      window_memory_.push_back(block);
      device_.zero(stream_, block, bytes);
      device_.synchronize(stream_);
      ncclWindow_t& window = windows_.emplace_back();  // belongs to the group, which ends it
      finish(ncclCommWindowRegister(comm_, block, bytes, &window, NCCL_WIN_COLL_SYMMETRIC), kInitSeconds,
             "sharing memory for messages");
      return static_cast<std::byte*>(block);
    }
#endif
    return static_cast<std::byte*>(blocks_.emplace_back(device_, bytes).data());
  }

  /// Waits until the library has accepted a call.
  void finish(ncclResult_t result, double limit, const char* doing) {
    const auto begin = std::chrono::steady_clock::now();
    while (result == ncclInProgress) {
      const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
      throw_unless_success(asked, doing);
      if (result != ncclInProgress) break;
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (waited.count() >= limit) fail(fmt::format("{} took more than {} s", doing, limit));
      pause_between_polls(waited.count());
    }
    throw_unless_success(result, doing);
  }
  /// One call, or one group of calls, in the launch order of all groups.
  template <typename Call>
  void call(const char* what, const Call& make) {
    require_living();
    if (orders_) launch_order().before(device_, stream_);
    finish(make(), limit_, what);
    if (orders_) launch_order().after(stream_);
  }

  /// Waits for the stream with the limit of the start.
  void finish_stream(const char* doing) {
    const auto begin = std::chrono::steady_clock::now();
    for (cudaError_t state = cudaStreamQuery(cuda_stream(stream_)); state != cudaSuccess;
         state = cudaStreamQuery(cuda_stream(stream_))) {
      if (state != cudaErrorNotReady) fail(fmt::format("{} failed: {}", doing, cudaGetErrorString(state)));
      check();
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (waited.count() >= limit_) fail(fmt::format("{} took more than {} s", doing, limit_));
      pause_between_polls(waited.count());
    }
  }

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
    call(what, [&] {
      ncclResult_t result = ncclGroupStart();
      if (result != ncclSuccess) return result;
      // ncclGroupEnd() must be called and reports the errors of the calls in the group.
      for (const OutMessage& message : out)
        if (message.bytes > 0)
          (void)ncclSend(message.data, message.bytes, ncclChar, message.to, comm_, cuda_stream(stream_));
      for (const InMessage& message : in)
        if (message.bytes > 0)
          (void)ncclRecv(message.data, message.bytes, ncclChar, message.from, comm_, cuda_stream(stream_));
      return ncclGroupEnd();
    });
  }

  void do_allgather(const void* mine, std::size_t bytes, void* all, const char* what) override {
    call(what, [&] { return ncclAllGather(mine, all, bytes, ncclChar, comm_, cuda_stream(stream_)); });
  }
  void do_broadcast(void* data, std::size_t bytes, int root, const char* what) override {
    call(what, [&] { return ncclBroadcast(data, data, bytes, ncclChar, root, comm_, cuda_stream(stream_)); });
  }
  void do_barrier(const char*) override {
    LOCKSTEP_CHECK(false, "'{}' has no barrier: ranks synchronise on the host", name());
  }
  void do_allreduce_sum_fast(float* data, std::size_t count, const char* what) override {
    call(what,
         [&] { return ncclAllReduce(data, data, count, ncclFloat, ncclSum, comm_, cuda_stream(stream_)); });
  }

  Device& device_;
  void* stream_;
  ncclComm_t comm_ = nullptr;           ///< null after abandon()
  std::shared_ptr<ncclComm_t> living_;  ///< null after abandon(), for owners of registered memory
  int version_ = 0;
  bool orders_ = false;         ///< this NCCL needs LaunchOrder
  std::byte* block_ = nullptr;  ///< the rest of the last block of message_memory()
  std::size_t block_left_ = 0;
  std::vector<void*> window_memory_;
  // Where NCCL puts handles. It was seen (2.28, windows) to write one after its state had said that the call
  // was done: on the stack it overwrote what came later.
  std::deque<void*> handles_;
#if NCCL_VERSION_CODE >= 22700
  std::deque<ncclWindow_t> windows_;
#endif
  std::vector<Buffer> blocks_;
  double limit_ = kCallSeconds;
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
