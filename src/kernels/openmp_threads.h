// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The OpenMP runtime that oneDNN is linked with, if it is: a primitive runs on one thread, and the setting is
// the calling thread's. A thread of somebody else's program gets its own setting back (OneOpenMpThread).
#pragma once

namespace lockstep {

/// Sets the calling thread's OpenMP thread count to one. Nothing without such a runtime.
void use_one_openmp_thread();

/// One OpenMP thread for the calling thread until the end of the scope, and then as many as before.
class OneOpenMpThread {
 public:
  OneOpenMpThread();
  ~OneOpenMpThread();
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_ = 0;  ///< 0: there is no runtime
};

}  // namespace lockstep
