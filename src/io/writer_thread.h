// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread that works when it is woken: the one behind EventWriter and MetricsLog, so that no step waits for
// a disk. Who must wait for it, waits with a limit: a network disk may answer never. Its work must not throw.
//
// Only this thread calls write() and fdatasync(). flush(), sync() and close() ask it and wait
// summary.timeout_seconds at most; then they warn once, and while the thread hangs in the same call nobody
// waits for it again. Otherwise a run that has finished would never end if its disk hangs. At the end a
// hanging thread is left alone: it owns the queue and the file, so nothing that it uses goes away before the
// process does. A checkpoint may then be on the disk whose last records are not; the warning says so. Tests
// have such a disk by LD_PRELOAD (tests/e2e/hanging_disk.cpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace lockstep {

class WriterThread {
 public:
  /// How far the work goes: the operating system has the data; the disk has them; the file is closed.
  enum class Extent { written, durable, closed };

  struct Options {
    double every_seconds = 0;  ///< > 0: works this often without being woken too
    double patience_seconds = 60;
  };

  /// `work` owns what it uses: a thread that hangs outlives this object. If no thread can be started, that is
  /// a warning, and wait() does the work. `what`: for messages, "writer of event files".
  WriterThread(std::string_view what, std::function<void(Extent)> work, const Options& options);
  /// Ends the thread after the work that it has begun; leaves it alone if that takes too long.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  /// Any thread. Several calls before the work begins are one.
  void wake();
  /// Any thread: waits until work that began after this call has ended, at most patience_seconds. After that
  /// once it does not wait as long as the thread hangs in the same work. False: the work has not ended;
  /// `file` is what the warning names.
  bool wait(Extent extent, const std::string& file);

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace lockstep
