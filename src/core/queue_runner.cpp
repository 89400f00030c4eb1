// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/queue_runner.h"

#include <atomic>
#include <stop_token>
#include <utility>

namespace lockstep {

// Kept alive by the runner's threads, because the callback refers to the queue.
struct QueueRunner::State {
  State(Coordinator& owner, QueueControl& target, Producer function, int threads)
      : coordinator(owner),
        queue(target),
        producer(std::move(function)),
        running(threads),
        cancel_at_stop(owner.stop_token(), [&target] { target.cancel(); }) {}

  // An exception does not close the queue: it stops the coordinator, which cancels the queue.
  void run(int thread) {
    bool more = true;
    while (more && !coordinator.should_stop()) {
      try {
        more = producer(thread);
      } catch (const EndOfInput&) {
        more = false;
      } catch (const Cancelled&) {
        more = false;
      }
    }
    if (--running == 0) queue.close();
  }

  Coordinator& coordinator;
  QueueControl& queue;
  Producer producer;
  std::atomic<int> running;
  std::stop_callback<std::function<void()>> cancel_at_stop;
};

QueueRunner::QueueRunner(Coordinator& coordinator, QueueControl& queue, std::string name, int threads,
                         Producer producer) {
  LOCKSTEP_REQUIRE(threads >= 1, ErrorKind::config, "queue runner '{}' needs at least one thread", name);
  state_ = std::make_shared<State>(coordinator, queue, std::move(producer), threads);
  for (int thread = 0; thread < threads; ++thread)
    coordinator.start_thread(threads == 1 ? name : fmt::format("{} {}", name, thread),
                             [state = state_, thread] { state->run(thread); });
}

}  // namespace lockstep
