// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A queue runner: threads that feed a queue until their input ends.
//
//   - Each thread calls the producer again and again. It returns false, or throws EndOfInput, when there is
//     no more; the last thread to end closes the queue, so that what is in it is still read.
//   - Any other exception stops all, with the thread's name in it.
//   - A stop of the coordinator, whoever asked, cancels the queue: nobody stays blocked in a push or a pop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/bounded_queue.h"
#include "core/coordinator.h"

namespace lockstep {

class QueueRunner {
 public:
  /// Makes elements and pushes them; called by `threads` threads at a time, each with its number. It may push
  /// with kNoLimit. False: this thread is done.
  using Producer = std::function<bool(int thread)>;

  /// Starts the threads at once: "name", or "name 0" ... if they are several. The queue must outlive them:
  /// declare it before the coordinator, whose destructor joins. The runner itself may go earlier.
  QueueRunner(Coordinator& coordinator, QueueControl& queue, std::string name, int threads,
              Producer producer);

  /// Threads that have not met the end of the input.
  int running() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
