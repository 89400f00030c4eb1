// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL's communicator on emulated GPUs, one per rank: how often it is called, how it waits, connects and
// ends.
#include "comm/device_communicator.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/mpi_device_communicator.h"
#include "comm/nccl_communicator.h"
#include "comm/tree_reduction.h"
#include "core/buffer.h"
#include "core/error.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "support/cuda_emulation/counts.h"
#include "support/mpi_world.h"
#include "train/kernel_arithmetic.h"

namespace lockstep {
namespace {

using emulation::counts;
using emulation::reset_counts;

/// Sets a variable of the environment while it lives.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

Device& own_device() { return cuda_backend().open(test_world().rank()); }

/// How often this thread has given up the processor to wait.
std::int64_t num_sleeps() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

/// What a rank does with its neighbours: 8 bytes to the next one, 8 from the one before.
void pass_on(DeviceCommunicator& group, Buffer& sent, Buffer& received) {
  const int ranks = group.size(), rank = group.rank();
  group.exchange(sent.data(), 8, (rank + 1) % ranks, received.data(), 8, (rank + ranks - 1) % ranks, "test");
}

TEST(DeviceCommunicator, WaitsForACallWithoutSleeping) {
  const DeviceStream stream(own_device());
  const auto group = make_nccl_communicator(test_world(), own_device(), stream.get(), "test");
  Buffer sent(own_device(), 8), received(own_device(), 8);
  const Setting slow("LOCKSTEP_EMULATED_NCCL_MICROSECONDS", "1000");
  constexpr int kCalls = 20;
  const std::int64_t before = num_sleeps();
  for (int i = 0; i < kCalls; ++i) pass_on(*group, sent, received);
  EXPECT_LT(num_sleeps() - before, kCalls);  // pauses of 100 us make many in each call's millisecond
  stream.synchronize();
}

TEST(DeviceCommunicator, ExchangesWholeHalvesOfABucket) {
  const int ranks = test_world().size();
  const DeviceStream compute(own_device()), exchange(own_device());
  const KernelArithmetic arithmetic(cuda_backend().kernels({}).elementwise);
  constexpr std::int64_t kCount = 5 << 20;  // 20 MB, several pieces of any fixed size
  for (const bool compress : {false, true}) {
    GradientReducer reducer(
        test_world(), nullptr, ranks, kCount, {{0, kCount}},
        {.sum = DeviceTreeSum{
             .place = {.device = &own_device(),
                       .stream = compute.get(),
                       .direct = make_nccl_communicator(test_world(), own_device(), exchange.get(), "test"),
                       .arithmetic = &arithmetic},
             .compress = compress}});
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i % 7) + static_cast<std::size_t>(test_world().rank()));
    own_device().copy_from_host(reducer.partial(0), values.data(), values.size() * sizeof(float));
    reset_counts();
    reducer.start(0);
    reducer.wait_all();
    compute.synchronize();
    if (ranks == 2) {
      EXPECT_EQ(counts().nccl_calls, 2);
    }
    if (ranks == 4) {
      EXPECT_EQ(counts().nccl_calls, 4);
    }
    if (ranks != 3) {
      EXPECT_EQ(counts().nccl_sent_bytes, reducer.bytes_per_step());
    }
    own_device().copy_to_host(values.data(), reducer.result(), values.size() * sizeof(float));
    bool right = true;
    for (std::size_t i = 0; i < values.size(); ++i)
      right = right && values[i] == static_cast<float>(static_cast<std::size_t>(ranks) * (i % 7) +
                                                       static_cast<std::size_t>(ranks * (ranks - 1) / 2));
    EXPECT_TRUE(right);
  }
}

// Later sums would otherwise connect in the middle of training, where a call has a minute.
TEST(DeviceCommunicator, ConnectsAllPeersBeforeTheFirstSum) {
  const int ranks = test_world().size();
  const DeviceStream compute(own_device()), exchange(own_device());
  const KernelArithmetic arithmetic(cuda_backend().kernels({}).elementwise);
  const std::shared_ptr<DeviceCommunicator> group =
      make_nccl_communicator(test_world(), own_device(), exchange.get(), "test");
  reset_counts();
  const std::vector<int> peers = TreeReduction::peers_of(test_world().rank(), ranks, ranks);
  group->connect({.peers = peers});
  EXPECT_EQ(counts().nccl_connections, std::ssize(peers) + 1);
  for (const std::int64_t count : {std::int64_t{1000}, std::int64_t{1} << 18}) {
    GradientReducer reducer(test_world(), nullptr, ranks, count, {{0, count}},
                            {.sum = DeviceTreeSum{.place = {.device = &own_device(),
                                                            .stream = compute.get(),
                                                            .direct = group,
                                                            .arithmetic = &arithmetic}}});
    reducer.start(0);
    reducer.wait_all();
    compute.synchronize();
  }
  EXPECT_EQ(counts().nccl_connections, std::ssize(peers) + 1);
}

// The library reaches the gradients of other ranks without copies of its own, and knows nothing of memory
// that is gone: the emulation ends the process when such memory is freed.
TEST(DeviceCommunicator, MessagesOfGradientsAreInRegisteredMemory) {
  const int ranks = test_world().size();
  const KernelArithmetic arithmetic(cuda_backend().kernels({}).elementwise);
  for (const char* version : {"21800", "21903", "22809"})
    for (const bool compress : {false, true})
      for (const std::int64_t count : {std::int64_t{1000}, std::int64_t{1} << 18}) {
        const Setting set("LOCKSTEP_EMULATED_NCCL_VERSION", version);
        const DeviceStream compute(own_device()), exchange(own_device());
        const std::shared_ptr<DeviceCommunicator> group =
            make_nccl_communicator(test_world(), own_device(), exchange.get(), "test");
        GradientReducer reducer(test_world(), nullptr, ranks, count, {{0, count}},
                                {.sum = DeviceTreeSum{.place = {.device = &own_device(),
                                                                .stream = compute.get(),
                                                                .direct = group,
                                                                .arithmetic = &arithmetic},
                                                      .compress = compress}});
        reset_counts();
        reducer.start(0);
        reducer.wait_all();
        compute.synchronize();
        EXPECT_GT(counts().nccl_calls, 0);
        EXPECT_EQ(counts().nccl_unregistered > 0, std::string(version) == "21800") << version;
      }
}

// NCCL forbids calls in which some ranks have registered memory and others not.
TEST(DeviceCommunicator, MemoryIsRegisteredOnAllRanksOrOnNone) {
  const KernelArithmetic arithmetic(cuda_backend().kernels({}).elementwise);
  if (test_world().rank() == 1) setenv("LOCKSTEP_EMULATED_NCCL_NO_REGISTRATION", "1", 1);
  const DeviceStream compute(own_device()), exchange(own_device());
  const std::shared_ptr<DeviceCommunicator> group =
      make_nccl_communicator(test_world(), own_device(), exchange.get(), "test");
  GradientReducer reducer(test_world(), nullptr, test_world().size(), 1000, {{0, 1000}},
                          {.sum = DeviceTreeSum{.place = {.device = &own_device(),
                                                          .stream = compute.get(),
                                                          .direct = group,
                                                          .arithmetic = &arithmetic}}});
  unsetenv("LOCKSTEP_EMULATED_NCCL_NO_REGISTRATION");
  reset_counts();
  reducer.start(0);
  reducer.wait_all();
  compute.synchronize();
  EXPECT_GT(counts().nccl_unregistered, 0);
}

TEST(DeviceCommunicator, RegisteredMemoryOutlivesAnEndedGroup) {
  const DeviceStream stream(own_device());
  const auto group = make_nccl_communicator(test_world(), own_device(), stream.get(), "test");
  Buffer memory(own_device(), 1024);
  const std::shared_ptr<void> owner = group->register_memory(memory.data(), memory.size_bytes());
  EXPECT_NE(owner, nullptr);
  group->abandon();
  memory = Buffer();
  EXPECT_THROW(group->register_memory(memory.data(), 1), Error);
}

// Batch norm's statistics: small sums of all ranks at once.
TEST(DeviceCommunicator, SmallMessagesAreInMemoryThatAllRanksSee) {
  for (const char* version : {"22600", "22809"}) {
    const Setting set("LOCKSTEP_EMULATED_NCCL_VERSION", version);
    const DeviceStream stream(own_device());
    const auto group = make_nccl_communicator(test_world(), own_device(), stream.get(), "test");
    std::vector<char*> all;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1000}, std::size_t{6} << 20, std::size_t{64}})
      all.push_back(static_cast<char*>(group->message_memory(bytes)));
    for (char* const memory : all) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
    std::vector<char> read(8, 1);
    own_device().copy_to_host(read.data(), all[0], read.size());
    EXPECT_EQ(read, std::vector<char>(8, 0));
    EXPECT_GE(all[1] - all[0], 8);
    reset_counts();
    group->allgather(all[0], 8, all[1], "test");
    stream.synchronize();
    EXPECT_EQ(counts().nccl_unregistered, std::string(version) == "22600" ? 2 : 0);
  }
}

// Where NCCL does not connect ranks, and MPI takes the memory of GPUs (of emulated ones it always does).
TEST(MpiDeviceCommunicator, SumsHaveTheBitsOfTheTreeWithoutCopiesThroughTheHost) {
  const int ranks = test_world().size();
  const KernelArithmetic arithmetic(cuda_backend().kernels({}).elementwise);
  constexpr std::int64_t kCount = 100000;
  for (const int shards : {ranks, 2 * ranks})
    for (const bool compress : {false, true})
      for (const bool overlap : {false, true}) {
        const auto sum = [&](std::shared_ptr<DeviceCommunicator> direct) {
          const DeviceStream compute(own_device());
          GradientReducer reducer(test_world(), nullptr, shards, kCount, {{0, 1000}, {1000, kCount}},
                                  {.sum = DeviceTreeSum{.place = {.device = &own_device(),
                                                                  .stream = compute.get(),
                                                                  .direct = std::move(direct),
                                                                  .arithmetic = &arithmetic},
                                                        .compress = compress},
                                   .overlap = overlap});
          std::vector<float> values(kCount);
          for (int k = 0; k < reducer.num_partials(); ++k) {
            for (std::size_t i = 0; i < values.size(); ++i)
              values[i] =
                  1.0F / static_cast<float>(
                             1 + (i * 7 + static_cast<std::size_t>(reducer.partial_subtree(k).first)) % 1013);
            own_device().copy_from_host(reducer.partial(k), values.data(), values.size() * sizeof(float));
          }
          reset_counts();
          reducer.start(0);
          reducer.start(1);
          reducer.wait_all();
          compute.synchronize();
          const std::int64_t through_host = counts().downloaded_bytes + counts().uploaded_bytes;
          own_device().copy_to_host(values.data(), reducer.result(), values.size() * sizeof(float));
          return std::pair(values, through_host);
        };
        const DeviceStream stream(own_device());
        std::shared_ptr<DeviceCommunicator> group =
            make_mpi_device_communicator(test_world(), own_device(), stream.get(), "test");
        group->connect({});
        const auto [values, bytes] = sum(group);
        EXPECT_EQ(bytes, 0);
        const auto [expected, through_host] = sum(nullptr);
        EXPECT_GT(through_host, 0);
        EXPECT_EQ(values, expected) << shards << " shards, compress " << compress << ", overlap " << overlap;
      }
}

// Ranks wait for their two streams in different orders, as GPUs may start kernels: without an order of the
// groups, each rank waits in the group that the other has not reached.
TEST(DeviceCommunicator, GroupsRunInTheHostsOrder) {
  for (const char* version : {"22500", "22809"}) {
    const Setting set("LOCKSTEP_EMULATED_NCCL_VERSION", version);
    const DeviceStream first(own_device()), second(own_device());
    const auto one = make_nccl_communicator(test_world(), own_device(), first.get(), "one");
    const auto two = make_nccl_communicator(test_world(), own_device(), second.get(), "two");
    Buffer sent(own_device(), 64), received(own_device(), 64);
    for (int i = 0; i < 3; ++i) {
      pass_on(*one, sent, received);
      two->allgather(sent.data(), 1, received.data(), "test");
    }
    const bool odd = test_world().rank() % 2 == 1;
    (odd ? second : first).synchronize();
    (odd ? first : second).synchronize();
  }
}

// Rank 0 fails while its stream has a message that no other rank answers. Memory of the device is freed
// before the communicator, which outlives the buffers as in a run.
TEST(DeviceCommunicator, AnErrorEndsGroupsBeforeMemoryIsFreed) {
  const DeviceStream stream(own_device());
  const auto group = make_nccl_communicator(test_world(), own_device(), stream.get(), "test");
  const auto other = make_nccl_communicator(test_world(), own_device(), stream.get(), "other");
  if (test_world().rank() == 0) {
    const auto fail = [&] {
      Buffer sent(own_device(), 64), received(own_device(), 64);
      other->exchange(sent.data(), 8, 1, received.data(), 8, 1, "never answered");
      const Setting failing("LOCKSTEP_EMULATED_NCCL_LOST", "1");
      group->check();
    };
    EXPECT_THROW(fail(), Error);
    EXPECT_THROW(other->check(), Error);
  }
  test_world().barrier("test");
  stream.synchronize();
}

TEST(DeviceCommunicator, AnyErrorEndsGroupsBeforeMemoryIsFreed) {
  const DeviceStream stream(own_device());
  const auto group = make_nccl_communicator(test_world(), own_device(), stream.get(), "test");
  if (test_world().rank() == 0) {
    try {
      Buffer sent(own_device(), 64), received(own_device(), 64);
      const AbandonOnError abandon;
      group->exchange(sent.data(), 8, 1, received.data(), 8, 1, "never answered");
      throw Error(ErrorKind::numeric, "another error");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::numeric);
    }
  }
  test_world().barrier("test");
  stream.synchronize();
}

}  // namespace
}  // namespace lockstep
