// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a grid: blocks one after the other, the threads of a block as fibers. A thread that never waits passes
// its stack to the next thread, so kernels without barriers run as a plain loop.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "device_emulation.h"
#include "fiber.h"

constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim{}, gridDim{};

namespace lockstep::emulation {
namespace {

constexpr unsigned int kWarp = 32;

enum class State { ready, at_barrier, at_exchange, finished };

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes, present;
  void run() const {
    std::memcpy(to, from, present);
    std::memset(static_cast<char*>(to) + present, 0, bytes - present);
  }
};

struct Thread {
  Fiber* fiber = nullptr;
  State state = State::ready;
  uint3 index{};
  const char* what = "";
  std::vector<Copy> copies;              ///< not yet in a group
  std::deque<std::vector<Copy>> groups;  ///< not yet waited for
};

/// The exchange slots of a warp's lanes. Two sets alternate, so that no lane overwrites a value that another
/// has yet to read.
struct Warp {
  std::uint64_t slots[2][kWarp];
  unsigned int generation = 0;
};

class Block {
 public:
  Block(unsigned int count, const std::function<void()>& kernel)
      : kernel_(kernel), threads_(count), warps_((count + kWarp - 1) / kWarp) {
    for (unsigned int i = 0; i < count; ++i)
      threads_[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  }

  void run() {
    for (Thread& thread : threads_) {
      thread.state = State::ready;
      thread.copies.clear();
      thread.groups.clear();
    }
    for (unsigned int waiting = 1; waiting > 0;) {
      for (unsigned int w = 0; w < warps_.size(); ++w) run_warp(w);
      waiting = 0;
      for (Thread& thread : threads_)
        if (thread.state == State::at_barrier) {
          thread.state = State::ready;
          ++waiting;
        }
    }
  }

  void wait(State state, const char* what) {
    Thread& thread = threads_[current_];
    thread.state = state;
    thread.what = what;
    thread.fiber->suspend();
  }

  std::uint64_t exchange(unsigned int mask, std::uint64_t value, unsigned int from, const char* what) {
    const unsigned int w = current_ / kWarp, lanes = lanes_of(w);
    const unsigned int whole = lanes == kWarp ? 0xFFFFFFFFU : (1U << lanes) - 1U;
    if (mask != whole || from >= lanes) {
      std::fprintf(stderr, "emulated GPU: %s with mask %08x, lane %u, in a warp of %u lanes\n", what, mask,
                   from, lanes);
      std::abort();
    }
    Warp& warp = warps_[w];
    std::uint64_t* slots = warp.slots[warp.generation % 2];
    slots[current_ % kWarp] = value;
    wait(State::at_exchange, what);
    return slots[from];
  }

  Thread& thread() { return threads_[current_]; }

 private:
  unsigned int lanes_of(unsigned int w) const {
    const unsigned int rest = static_cast<unsigned int>(threads_.size()) - w * kWarp;
    return rest < kWarp ? rest : kWarp;
  }

  /// Runs until every lane has finished or waits at the block's barrier.
  void run_warp(unsigned int w) {
    const unsigned int first = w * kWarp, lanes = lanes_of(w);
    while (true) {
      unsigned int exchanging = 0;
      for (unsigned int i = first; i < first + lanes; ++i) {
        if (threads_[i].state == State::ready) run_thread(i);
        exchanging += threads_[i].state == State::at_exchange ? 1 : 0;
      }
      if (exchanging == 0) return;
      if (exchanging < lanes) report_divergence(first, lanes);
      ++warps_[w].generation;
      for (unsigned int i = first; i < first + lanes; ++i) threads_[i].state = State::ready;
    }
  }

  void run_thread(unsigned int i) {
    Thread& thread = threads_[i];
    current_ = i;
    threadIdx = thread.index;
    if (thread.fiber == nullptr) {
      if (spare_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>());
        spare_.push_back(fibers_.back().get());
      }
      thread.fiber = spare_.back();
      spare_.pop_back();
      thread.fiber->start([](void* self) { static_cast<Block*>(self)->kernel_(); }, this);
    }
    if (!thread.fiber->resume()) return;
    thread.state = State::finished;
    spare_.push_back(thread.fiber);
    thread.fiber = nullptr;
  }

  [[noreturn]] void report_divergence(unsigned int first, unsigned int lanes) const {
    std::fprintf(stderr, "emulated GPU: the lanes of a warp never synchronise (block %u,%u,%u):\n",
                 blockIdx.x, blockIdx.y, blockIdx.z);
    for (unsigned int i = first; i < first + lanes; ++i)
      std::fprintf(stderr, "  thread %u: %s\n", i,
                   threads_[i].state == State::finished ? "has ended" : threads_[i].what);
    std::abort();
  }

  const std::function<void()>& kernel_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  unsigned int current_ = 0;
  static thread_local std::vector<std::unique_ptr<Fiber>> fibers_;
  static thread_local std::vector<Fiber*> spare_;
};

thread_local std::vector<std::unique_ptr<Fiber>> Block::fibers_;
thread_local std::vector<Fiber*> Block::spare_;
thread_local Block* running = nullptr;

/// The dynamic shared memory of the blocks of a grid, which run one after the other.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes), lines_(bytes / sizeof(Line) + 2) {}
  void* data() { return lines_.data(); }
  bool empty() const { return bytes_ == 0; }
  std::size_t bytes_from(const void* address) const {
    const auto first = reinterpret_cast<std::uintptr_t>(lines_.data()),
               wanted = reinterpret_cast<std::uintptr_t>(address);
    return wanted >= first && wanted - first < bytes_ ? bytes_ - (wanted - first) : 0;
  }
  void poison() { std::memset(lines_.data(), kPoison, lines_.size() * sizeof(Line)); }
  void check() const {
    const auto* all = reinterpret_cast<const unsigned char*>(lines_.data());
    for (std::size_t i = bytes_; i < lines_.size() * sizeof(Line); ++i)
      if (all[i] != kPoison) {
        std::fprintf(stderr,
                     "emulated GPU: block %u,%u,%u wrote past its %zu bytes of dynamic shared memory\n",
                     blockIdx.x, blockIdx.y, blockIdx.z, bytes_);
        std::abort();
      }
  }

 private:
  static constexpr unsigned char kPoison = 0xFF;
  struct alignas(128) Line {
    unsigned char bytes[128];
  };
  std::size_t bytes_;
  std::vector<Line> lines_;
};
thread_local SharedMemory* shared_memory = nullptr;

Block& running_block(const char* what) {
  if (running == nullptr) {
    std::fprintf(stderr, "emulated GPU: %s outside a kernel\n", what);
    std::abort();
  }
  return *running;
}

}  // namespace

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  gridDim = grid;
  blockDim = block;
  Block threads(block.x * block.y * block.z, kernel);
  SharedMemory shared(shared_bytes);
  running = &threads;
  shared_memory = &shared;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
        if (!shared.empty()) shared.poison();
        threads.run();
        if (!shared.empty()) shared.check();
      }
  running = nullptr;
  shared_memory = nullptr;
}

void* dynamic_shared_memory() {
  if (shared_memory == nullptr || shared_memory->empty()) {
    std::fprintf(stderr, "emulated GPU: the kernel was started without dynamic shared memory\n");
    std::abort();
  }
  return shared_memory->data();
}

std::size_t dynamic_shared_bytes_from(const void* address) {
  return shared_memory == nullptr ? 0 : shared_memory->bytes_from(address);
}

void copy_async(void* to, const void* from, std::size_t bytes, std::size_t present) {
  static const bool at_once = std::getenv("LOCKSTEP_EMULATED_RUN_AHEAD") != nullptr;
  const auto from_address = reinterpret_cast<std::uintptr_t>(from);
  if ((bytes != 4 && bytes != 8 && bytes != 16) || present > bytes || from_address % bytes != 0) {
    std::fprintf(stderr, "emulated GPU: cp.async of %zu of %zu bytes from %p to %p\n", present, bytes, from,
                 to);
    std::abort();
  }
  require_shared(to, bytes, "cp.async");
  require_global(from, present > 0 ? present : 1, "cp.async");
  const Copy copy{to, from, bytes, present};
  if (at_once)
    copy.run();
  else
    running_block("cp.async").thread().copies.push_back(copy);
}

void commit_copies() {
  Thread& thread = running_block("cp.async.commit_group").thread();
  thread.groups.push_back(std::move(thread.copies));
  thread.copies.clear();
}

void wait_copies(std::size_t pending) {
  Thread& thread = running_block("cp.async.wait_group").thread();
  for (; thread.groups.size() > pending; thread.groups.pop_front())
    for (const Copy& copy : thread.groups.front()) copy.run();
}

std::uint64_t exchange(unsigned int mask, std::uint64_t value, unsigned int from, const char* what) {
  return running_block(what).exchange(mask, value, from, what);
}

void block_barrier() { running_block("__syncthreads").wait(State::at_barrier, "__syncthreads"); }

}  // namespace lockstep::emulation
