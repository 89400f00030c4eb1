// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A queue runner: threads that fill a queue until their input ends.
//
//   - Each thread calls the producer repeatedly. The producer returns false or throws EndOfInput at the end
//     of its input. The last thread to end closes the queue; queued elements can still be read.
//   - Any other exception stops the coordinator's threads and carries the thread's name.
//   - Any stop of the coordinator cancels the queue, so that no thread stays blocked in a push or a pop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/bounded_queue.h"
#include "core/coordinator.h"

namespace lockstep {

class QueueRunner {
 public:
  /// Creates elements and pushes them. Called by all threads concurrently, each with its number; it may push
  /// with kNoLimit. Returns false when this thread is done.
  using Producer = std::function<bool(int thread)>;

  /// Starts the threads, named "name", or "name 0", "name 1", ... if there are several. The queue must
  /// outlive them: declare it before the coordinator, whose destructor joins the threads. The runner itself
  /// may be destroyed earlier.
  QueueRunner(Coordinator& coordinator, QueueControl& queue, std::string name, int threads,
              Producer producer);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
