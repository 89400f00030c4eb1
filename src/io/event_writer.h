// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes event files for TensorBoard: TFRecord framing with masked CRC-32C around protobuf messages
// (event.proto).
//
// The calling thread only puts events into a queue of limited size (event_queue.h). A thread of the writer
// encodes them and writes them, so a slow, full or lost disk neither blocks nor ends a training run:
//
//   a slow disk          what does not fit into the queue is dropped and counted, large values before
//                        numbers; one warning
//   a full disk          events wait in the queue, with a warning; one says which steps are missing when the
//                        disk takes events again
//
// flush(), sync() and close() wait for the disk. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/event_reader.h"
#include "io/summary_value.h"

namespace lockstep {

class WriterThread;

class EventWriter {
 public:
  struct Options {
    std::size_t queue_bytes = std::size_t{64} << 20;
    double flush_seconds = 0;  ///< > 0: the thread also writes this often
    std::string suffix = {};   ///< of the file's name
    double patience_seconds = 60;
  };

  /// Creates `folder` if it does not exist, and in it
  /// `events.out.tfevents.<10-digit time>.<host>.<pid><suffix>`.
  explicit EventWriter(const std::string& folder) : EventWriter(folder, Options()) {}
  EventWriter(const std::string& folder, const Options& options);
  /// Closes the file; an error is a warning.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Writes one number, in float32 as in TensorBoard. NaN and infinities are written unchanged.
  void scalar(std::string_view tag, std::int64_t step, double value);
  /// Writes values of one step, in one record. A file holds the metadata of a tag once, with its first value.
  void add(std::int64_t step, std::vector<SummaryValue> values);
  /// `graph_def`: a serialised graph (graph_summary.h). A file holds one.
  void graph(std::string graph_def);
  /// The times of a step (run_metadata.h). TensorBoard shows the tags next to the graph.
  void run_metadata(std::string_view tag, std::int64_t step, std::string serialised);
  void session_log(SessionStatus status, std::int64_t step, std::string_view checkpoint_path = {},
                   std::string_view message = {});
  /// Makes TensorBoard discard the values of earlier files from `step` on. A resumed run calls it with the
  /// first step that it computes.
  void restart_from(std::int64_t step) { session_log(SessionStatus::start, step); }
  /// Has the thread write everything soon. Does not wait.
  void request_flush();

  // These wait for the thread, at most patience_seconds: then they warn, and what is queued may be lost.

  /// Hands all data to the operating system, so that it survives the end of this process.
  void flush();
  /// Flushes, and makes the data durable, so that they survive the end of this machine.
  void sync();
  /// Flushes and closes the file. Later calls have no effect.
  void close();

  /// The file's path; empty if it could not be created.
  std::string path() const;
  /// Why the file takes no events now, or empty.
  std::string error() const;
  /// Values that did not fit into the queue.
  std::int64_t dropped() const;

 private:
  struct Impl;
  template <typename Push>
  void enqueue(std::int64_t step, Push&& push);

  std::shared_ptr<Impl> impl_;  // of the thread too, which may hang
  std::unique_ptr<WriterThread> thread_;
};

}  // namespace lockstep
