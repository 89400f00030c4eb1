// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A program may have promised MPI that it has no second thread (MPI_THREAD_SINGLE). While an object of this
// class lives, Lockstep starts none: it computes, reads and saves in the caller's thread, and what needs a
// thread of its own is an error (start_thread.h).
#pragma once

namespace lockstep {

class ThreadBan {
 public:
  ThreadBan();
  ~ThreadBan();
  ThreadBan(const ThreadBan&) = delete;
  ThreadBan& operator=(const ThreadBan&) = delete;

  static bool active();
};

}  // namespace lockstep
