// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The OpenMP runtime that oneDNN is linked with, if it is. It would start a team in every primitive; with one
// thread each, microshards run independently. The setting is the calling thread's. A thread of somebody
// else's program gets its own setting back (OneOpenMpThread).
#pragma once

#include <thread>

namespace lockstep {

/// Sets the calling thread's OpenMP thread count to one. Nothing without such a runtime.
void use_one_openmp_thread();

/// One OpenMP thread for the calling thread as long as the object lives, and then as many as before, if it
/// ends on the same thread.
class OneOpenMpThread {
 public:
  OneOpenMpThread();
  ~OneOpenMpThread();
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  int before_ = 0;  ///< 0: there is no runtime
};

}  // namespace lockstep
