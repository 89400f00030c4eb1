// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_device_communicator.h"

#include <dlfcn.h>

#include <atomic>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "core/error.h"

namespace lockstep {

namespace {

class MpiDeviceCommunicator final : public DeviceCommunicator {
 public:
  MpiDeviceCommunicator(Communicator& group, Device& device, void* stream, std::string name)
      : DeviceCommunicator(group.rank(), group.size(), name),
        group_(group.duplicate(std::move(name))),
        device_(device),
        stream_(stream) {}

  void* stream() const override { return stream_; }
  bool blocks() const override { return true; }
  void check() override {
    if (ended_) throw Error(ErrorKind::communication, fmt::format("the group '{}' has ended", name()));
  }
  void abandon() noexcept override { ended_ = true; }

  void connect(const Uses&) override {
    const auto ranks = static_cast<std::size_t>(size());
    const Buffer mine(device_, sizeof(std::int32_t)), all(device_, ranks * sizeof(std::int32_t));
    const std::int32_t number = rank() + 1;
    device_.copy_from_host(mine.data(), &number, sizeof number);
    allgather(mine.data(), sizeof number, all.data(), "connecting all ranks");
    std::vector<std::int32_t> arrived(ranks);
    device_.copy_to_host(arrived.data(), all.data(), all.size_bytes());
    for (std::size_t i = 0; i < ranks; ++i)
      if (arrived[i] != static_cast<std::int32_t>(i) + 1)
        throw Error(ErrorKind::config,
                    fmt::format("MPI did not carry the memory of {}: {} came from rank {}", device_.name(),
                                arrived[i], i),
                    "", "Set comm.gpu_aware_mpi=off.");
  }

  void* message_memory(std::size_t bytes) override { return messages_.emplace_back(device_, bytes).data(); }
  std::shared_ptr<void> register_memory(void*, std::size_t) override { return nullptr; }

 private:
  /// What is sent is written, and nothing reads any more what is received into.
  Communicator& ready() {
    check();
    device_.synchronize(stream_);
    return *group_;
  }

  void do_exchange(const void* send, std::size_t send_bytes, int to, void* recv, std::size_t recv_bytes,
                   int from, const char* what) override {
    ready().exchange(send, send_bytes, to, recv, recv_bytes, from, what);
  }
  // A piece is received when the additions of earlier pieces are done, and a slot is free.
  void do_exchange_pieces(const void* send, std::size_t send_bytes, std::size_t recv_bytes, int peer,
                          void* ring, std::size_t piece_bytes, Arrived arrived, const char* what) override {
    ready().exchange_pieces(
        send, send_bytes, recv_bytes, peer, ring, piece_bytes,
        [&](std::size_t offset, const void* piece, std::size_t bytes) {
          arrived(offset, piece, bytes);
          if (bytes < recv_bytes) device_.synchronize(stream_);
        },
        what);
  }
  void do_exchange_many(std::span<const OutMessage> out, std::span<const InMessage> in,
                        const char* what) override {
    ready().exchange_many(out, in, what);
  }
  void do_allgather(const void* mine, std::size_t bytes, void* all, const char* what) override {
    ready().allgather(mine, bytes, all, what);
  }
  void do_broadcast(void* data, std::size_t bytes, int root, const char* what) override {
    ready().broadcast(data, bytes, root, what);
  }
  void do_barrier(const char* what) override { ready().barrier(what); }
  void do_allreduce_sum_fast(float* data, std::size_t count, const char* what) override {
    ready().allreduce_sum_fast(data, count, what);
  }

  std::unique_ptr<Communicator> group_;
  Device& device_;
  void* stream_;
  std::vector<Buffer> messages_;
  std::atomic<bool> ended_ = false;
};

}  // namespace

// Looked up, because not every MPI library has it, and not every package has its header.
bool mpi_takes_device_memory() {
  using Query = int (*)();
  const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

std::unique_ptr<DeviceCommunicator> make_mpi_device_communicator(Communicator& group, Device& device,
                                                                 void* stream, std::string name) {
  return std::make_unique<MpiDeviceCommunicator>(group, device, stream, std::move(name));
}

}  // namespace lockstep
