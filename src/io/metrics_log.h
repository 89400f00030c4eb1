// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes metrics.jsonl: one JSON object per line, for scripts.
//
//   {"step":200,"epoch":3,"split":"train","loss":0.25,"accuracy":0.9375}
//
// Numbers have enough digits to read the same double back. NaN and infinities are written as null, because
// JSON cannot express them. As with event files (event_writer.h), a thread encodes and writes, records that
// do not fit into its queue are dropped and counted, and the first disk error is a warning and does not end
// the training. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

class WriterThread;

class MetricsLog {
 public:
  /// Several numbers with one name; a row-major matrix if `columns` > 0.
  struct List {
    std::string name;
    std::span<const double> values;
    std::int64_t columns = 0;
  };

  /// Appends to `path`; the first record creates the file. Removes a last line that a killed run left
  /// incomplete.
  explicit MetricsLog(std::string path, std::size_t queue_bytes = std::size_t{16} << 20,
                      double patience_seconds = 60);
  /// Writes what is queued, like flush().
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// Queues one record, which the thread hands to the operating system at once. The names "step", "epoch"
  /// and "split" are reserved.
  void append(std::int64_t step, std::int64_t epoch, std::string_view split,
              std::span<const std::pair<std::string, double>> values, std::span<const List> lists = {});
  /// Waits until the records so far are with the operating system, at most patience_seconds: then it warns,
  /// and they may be lost.
  void flush();
  /// Likewise; the records are durable then, so that they survive the end of this machine.
  void sync();
  /// Removes the records of steps above `step`, and of evaluations (split "eval") above `evaluated_step`,
  /// atomically: a resumed run computes them again. Also removes lines that are not records, with a warning.
  void drop_after(std::int64_t step, std::int64_t evaluated_step);
  void drop_after(std::int64_t step) { drop_after(step, step); }

  /// The first error, or empty.
  std::string error() const;
  /// Records that did not fit into the queue.
  std::int64_t dropped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // of the thread too, which may hang
  std::unique_ptr<WriterThread> thread_;
};

}  // namespace lockstep
