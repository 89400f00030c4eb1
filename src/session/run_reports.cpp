// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_reports.h"

#include <mutex>
#include <utility>

#include "core/log.h"
#include "core/timed_service.h"
#include "io/event_trim.h"
#include "io/event_writer.h"

namespace lockstep {

namespace {

constexpr std::size_t kMetricsQueueBytes = std::size_t{16} << 20;

}  // namespace

struct RunReports::Files {
  /// Calls `use` with copies of the pointers, so that no thread waits while another one writes.
  template <typename Use>
  void each(Use&& use) {
    std::shared_ptr<EventWriter> events[2];
    std::shared_ptr<MetricsLog> log;
    {
      const std::lock_guard lock(mutex);
      events[0] = train;
      events[1] = eval;
      log = metrics;
    }
    for (const auto& writer : events)
      if (writer) use(*writer);
    if (log) use(*log);
  }

  std::mutex mutex;  // of changes; the loop's thread reads without it
  std::shared_ptr<EventWriter> train, eval;
  std::shared_ptr<MetricsLog> metrics;
};

namespace {

struct RequestFlush {
  void operator()(EventWriter& events) const { events.request_flush(); }
  void operator()(MetricsLog&) const {}  // its thread writes each record at once
};

struct Sync {
  void operator()(EventWriter& events) const { events.sync(); }
  void operator()(MetricsLog& log) const { log.sync(); }
};

}  // namespace

RunReports::RunReports(bool is_chief, std::string run_dir, Options options)
    : is_chief_(is_chief),
      run_dir_(std::move(run_dir)),
      options_(options),
      files_(std::make_shared<Files>()) {
  if (is_chief && options.events)
    loop(coordinator_, options.flush_seconds, [files = files_] { files->each(RequestFlush()); },
         {.name = "event files"});
}

RunReports::~RunReports() = default;

void RunReports::resume_from(std::int64_t step, std::int64_t evaluated_step) {
  if (!is_chief_) return;
  close();
  std::shared_ptr<EventWriter> train, eval;
  std::shared_ptr<MetricsLog> metrics;
  if (options_.events) {
    drop_events_after(run_dir_, step);
    drop_events_after(run_dir_ + "/eval", evaluated_step);
    EventWriter::Options options;
    options.patience_seconds = options_.patience_seconds;
    train = std::make_shared<EventWriter>(run_dir_, options);
    eval = std::make_shared<EventWriter>(run_dir_ + "/eval", options);
    // TensorBoard may have read what is dropped: a restart tells it to forget that. It takes the first one of
    // a run for the run's begin, so each job writes one.
    train->restart_from(step + 1);
    eval->restart_from(evaluated_step + 1);
  }
  if (options_.metrics) {
    metrics = std::make_shared<MetricsLog>(run_dir_ + "/metrics.jsonl", kMetricsQueueBytes,
                                           options_.patience_seconds);
    metrics->drop_after(step, evaluated_step);
  }
  const std::lock_guard lock(files_->mutex);
  files_->train = std::move(train);
  files_->eval = std::move(eval);
  files_->metrics = std::move(metrics);
}

void RunReports::record(Split split, std::int64_t step, std::int64_t epoch, std::span<const Value> values,
                        std::span<const List> lists) {
  if (EventWriter* events = (split == Split::train ? files_->train : files_->eval).get())
    for (const Value& value : values)
      if (value.event) events->scalar(value.name, step, value.value);
  if (!files_->metrics) return;
  std::vector<std::pair<std::string, double>> named;
  for (const Value& value : values) named.emplace_back(value.name, value.value);
  files_->metrics->append(step, epoch, split == Split::train ? "train" : "eval", named, lists);
}

void RunReports::event(std::string_view tag, std::int64_t step, double value) {
  if (files_->train) files_->train->scalar(tag, step, value);
}

void RunReports::summary(Split split, std::int64_t step, std::vector<SummaryValue> values) {
  if (EventWriter* events = (split == Split::train ? files_->train : files_->eval).get())
    events->add(step, std::move(values));
}

void RunReports::graph(std::string graph_def) {
  if (files_->train) files_->train->graph(std::move(graph_def));
}

void RunReports::run_metadata(std::string_view tag, std::int64_t step, std::string serialised) {
  if (files_->train) files_->train->run_metadata(tag, step, std::move(serialised));
}

void RunReports::session_log(SessionStatus status, std::int64_t step, std::string_view checkpoint_path) {
  if (files_->train) files_->train->session_log(status, step, checkpoint_path);
}

bool RunReports::has_events() const { return files_->train != nullptr; }

void RunReports::request_flush() { files_->each(RequestFlush()); }

std::function<void()> RunReports::syncer() const {
  return [files = files_] { files->each(Sync()); };
}

void RunReports::close() {
  std::shared_ptr<EventWriter> train, eval;
  std::shared_ptr<MetricsLog> metrics;
  {
    const std::lock_guard lock(files_->mutex);
    train.swap(files_->train);
    eval.swap(files_->eval);
    metrics.swap(files_->metrics);
  }
  for (const auto& events : {train, eval})
    if (events) events->close();  // another thread may still hold it for a moment
  if (metrics) metrics->flush();
}

void RunReports::note(const std::string& text) {
  if (!is_chief_) return;
  if (write_line_)
    write_line_(text);
  else
    log_info("{}", text);
}

}  // namespace lockstep
