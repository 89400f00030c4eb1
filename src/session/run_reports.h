// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the numbers of a training run go: event files, metrics.jsonl, lines for people. The hooks decide what
// is reported, and when. On ranks other than the chief every call does nothing. A thread of the chief flushes
// the event files every few seconds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/coordinator.h"
#include "io/event_reader.h"
#include "io/metrics_log.h"

namespace lockstep {

class RunReports {
 public:
  enum class Split { train, eval };
  struct Value {
    std::string_view name;
    double value;
    bool event = true;  ///< false: only into metrics.jsonl
  };
  /// Numbers of one name, for metrics.jsonl only.
  using List = MetricsLog::List;
  using LineWriter = std::function<void(std::string_view)>;

  struct Options {
    bool events = true;   ///< event files for TensorBoard
    bool metrics = true;  ///< metrics.jsonl
    double flush_seconds = 5;
    double patience_seconds = 60;  ///< for a disk that does not answer
  };

  RunReports(bool is_chief, std::string run_dir, Options options);
  ~RunReports();

  /// Opens the files of a new attempt, and drops what earlier attempts wrote of steps above `step`. Nothing
  /// is recorded before this call, so that a run that is already finished leaves no empty files.
  /// `evaluated_step`: the last one whose evaluation counts; an earlier attempt may have been killed just
  /// after it had run a deferred one (deferred_calls.h).
  void resume_from(std::int64_t step, std::int64_t evaluated_step);
  /// One record: a line of metrics.jsonl, and an event for each value. `epoch` counts from 1.
  void record(Split split, std::int64_t step, std::int64_t epoch, std::span<const Value> values,
              std::span<const List> lists = {});
  /// One event of training, without a line of metrics.jsonl.
  void event(std::string_view tag, std::int64_t step, double value);
  /// Values of any kind for the event files, in one record.
  void summary(Split split, std::int64_t step, std::vector<SummaryValue> values);
  /// Events for the event file of training alone (event_writer.h).
  void graph(std::string graph_def);
  void run_metadata(std::string_view tag, std::int64_t step, std::string serialised);
  void session_log(SessionStatus status, std::int64_t step, std::string_view checkpoint_path = {});
  /// False: summary() drops its values, so that nobody need make them.
  bool has_events() const;
  /// What is recorded is in the files soon. No step waits for a disk: threads of the files write.
  void request_flush();
  /// A function for any thread that makes everything recorded so far durable. It may outlive this object.
  std::function<void()> syncer() const;
  /// Flushes and closes the files.
  void close();

  /// A line for people ("checkpoint ..."). It goes to the progress display if there is one, else to the log.
  void note(const std::string& text);
  /// Where notes go; empty: the log.
  void set_line_writer(LineWriter writer) { write_line_ = std::move(writer); }

 private:
  bool is_chief_;
  std::string run_dir_;
  Options options_;
  /// The files, shared with threads that flush them. The loop's thread alone changes the pointers.
  struct Files;
  std::shared_ptr<Files> files_;
  LineWriter write_line_;
  Coordinator coordinator_;  // last: its thread ends before what it uses
};

}  // namespace lockstep
