// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/cpu.h"
#include "core/error.h"
#include "core/start_thread.h"
#include "core/trace.h"

namespace lockstep {

namespace {

inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constexpr int kSpins = 20000;  // about 0.2 to 0.5 ms, longer than the phases between synchronisations

}  // namespace

struct ThreadPool::Impl {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors;
  const FunctionRef<void(int)>* job = nullptr;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable work, done;
  int spins = 0;

  template <typename Ready>
  void wait_until(Ready ready, std::condition_variable& condition) {
    for (int i = 0; i < spins; ++i) {
      if (ready()) return;
      pause_processor();
    }
    std::unique_lock lock(mutex);
    condition.wait(lock, ready);
  }

  void call(int thread) noexcept {
    try {
      (*job)(thread);
    } catch (...) {
      errors[static_cast<std::size_t>(thread)] = std::current_exception();
    }
  }

  void end() noexcept {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void serve(int thread) {
    std::array<char, 24> name{};
    fmt::format_to_n(name.data(), name.size() - 1, "compute {}", thread);
    name_trace_thread(name.data());
    for (std::uint64_t seen = 0;;) {
      wait_until([&] { return stop.load() || generation.load() != seen; }, work);
      if (stop.load()) return;
      seen = generation.load();
      call(thread);
      if (running.fetch_sub(1) == 1) {
        { std::lock_guard lock(mutex); }  // the waiter has not tested yet or is asleep, never in between
        done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()), size_(threads) {
  LOCKSTEP_CHECK(threads >= 1);
  impl_->errors.resize(static_cast<std::size_t>(threads));
  impl_->spins = threads <= available_cores() ? kSpins : 0;
  try {
    for (int thread = 1; thread < threads; ++thread)
      impl_->threads.push_back(start_thread(fmt::format("compute thread {} of {}", thread + 1, threads),
                                            [this, thread] { impl_->serve(thread); }));
  } catch (...) {
    impl_->end();
    throw;
  }
}

ThreadPool::~ThreadPool() { impl_->end(); }

void ThreadPool::run(FunctionRef<void(int)> function) {
  Impl& impl = *impl_;
  if (size_ == 1) return function(0);
  std::fill(impl.errors.begin(), impl.errors.end(), nullptr);
  impl.job = &function;
  impl.running = size_ - 1;
  {
    std::lock_guard lock(impl.mutex);
    impl.generation.fetch_add(1);
  }
  impl.work.notify_all();
  impl.call(0);
  {
    const Traced traced("waiting", "for other threads");
    impl.wait_until([&] { return impl.running.load() == 0; }, impl.done);
  }
  for (const std::exception_ptr& error : impl.errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace lockstep
