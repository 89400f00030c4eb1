// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes what a C++ program records for TensorBoard:
//
//     SummaryWriter writer("runs/mine");
//     writer.add_scalar("loss", step, 0.25);
//     writer.add_histogram("errors", step, std::span(errors));                     // floats or doubles
//     writer.add_summary(step, image_values("inputs", {n, 28, 28, 1}, pixels));   // summary_media.h
//     writer.add_summary(step, {text_value("notes", "**first** run")});           // summary_plugins.h
//     writer.close();
//
// Values go into a queue, and a thread writes them: no call but flush(), sync(), reopen() and close() waits
// for the disk, and no disk error is thrown (event_writer.h). Thread-safe. The event files are read back with
// EventReader (event_reader.h), which ends at a truncated tail with a note.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/event_writer.h"
#include "io/graph_summary.h"
#include "io/summary_plugins.h"

namespace lockstep {

class SummaryWriter {
 public:
  struct Options {
    double flush_seconds = 120;  ///< the thread writes at least this often
    std::size_t queue_bytes = std::size_t{64} << 20;
    std::string suffix = {};  ///< of the files' names
  };

  /// Opens a new event file in `folder`, which is made.
  explicit SummaryWriter(std::string folder) : SummaryWriter(std::move(folder), Options()) {}
  SummaryWriter(std::string folder, Options options);
  ~SummaryWriter();

  void add_summary(std::int64_t step, std::vector<SummaryValue> values);
  void add_scalar(std::string_view tag, std::int64_t step, double value);
  void add_histogram(std::string_view tag, std::int64_t step, HistogramData histogram);
  /// The histogram of these numbers, in TensorFlow's buckets. NaN and infinities are in none: their number is
  /// the scalar `tag`/not_finite.
  void add_histogram(std::string_view tag, std::int64_t step, std::span<const float> numbers);
  void add_histogram(std::string_view tag, std::int64_t step, std::span<const double> numbers);
  void add_text(std::string_view tag, std::int64_t step, std::string text);
  void add_pr_curve(std::string_view name, std::int64_t step, const PrCurveCounts& counts);
  void add_hparams(const HParamsSession& session);
  void add_graph(std::span<const GraphNode> nodes);
  void add_session_log(SessionStatus status, std::int64_t step, std::string_view checkpoint_path = {},
                       std::string_view message = {});
  /// `serialised`: of run_metadata(). Throws Error(config) for a tag that this writer has used before.
  void add_run_metadata(std::string_view tag, std::int64_t step, std::string serialised);

  void flush();
  /// Flushes, and makes the data durable.
  void sync();
  /// Closes the file. Later calls are a warning (once), and do nothing else.
  void close();
  /// Closes the file and goes on in a new one.
  void reopen();

  std::string path() const;
  /// The first error of the present file, or empty.
  std::string error() const;
  std::int64_t dropped() const;

 private:
  std::shared_ptr<EventWriter> open_writer();

  const std::string folder_;
  const Options options_;
  mutable std::mutex mutex_;
  std::shared_ptr<EventWriter> writer_;  ///< also after close()
  bool is_closed_ = false, warned_ = false;
  std::set<std::string, std::less<>> metadata_tags_;
};

}  // namespace lockstep
