// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/metrics_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "core/log.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"
#include "io/json.h"
#include "io/unwritten.h"
#include "io/writer_thread.h"

namespace lockstep {

namespace {

/// Records after these steps are dropped.
struct Limits {
  std::int64_t step, evaluated_step;
};

/// What append() got, to be encoded by the thread.
struct Waiting {
  struct Numbers {
    std::string name;
    std::vector<double> values;
    std::int64_t columns;
  };
  std::int64_t step, epoch;
  std::string split;
  std::vector<std::pair<std::string, double>> values;
  std::vector<Numbers> lists;

  std::size_t bytes() const {
    std::size_t bytes = sizeof *this;
    for (const auto& [name, value] : values) bytes += sizeof name + name.size() + sizeof value;
    for (const Numbers& list : lists) bytes += sizeof list + list.name.size() + list.values.size() * 8;
    return bytes;
  }
};

/// With "\n". dump() writes NaN and infinities as null.
std::string line_of(const Waiting& from) {
  Json record;
  record["step"] = from.step;
  record["epoch"] = from.epoch;
  record["split"] = from.split;
  for (const auto& [name, value] : from.values) record[name] = value;
  for (const Waiting::Numbers& list : from.lists) {
    Json& numbers = record[list.name] = Json::array();
    for (std::size_t i = 0; i < list.values.size(); ++i) {
      if (list.columns > 0 && i % static_cast<std::size_t>(list.columns) == 0)
        numbers.push_back(Json::array());
      (list.columns > 0 ? numbers.back() : numbers).push_back(list.values[i]);
    }
  }
  return record.dump() + "\n";
}

/// A name that occurs twice would make a value invisible.
void require_different(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  LOCKSTEP_CHECK(twice == names.end(), "two values of a record are called '{}'", *twice);
}

enum class Line { kept, dropped, odd };
Line judge(std::string_view line, const Limits& limits) {
  const Json record = Json::parse_or_null(line);
  if (!record["step"].is_integer()) return Line::odd;
  const bool evaluation = record["split"] == "eval";
  const std::int64_t limit = evaluation ? limits.evaluated_step : limits.step;
  return record["step"].get<std::int64_t>() <= limit ? Line::kept : Line::dropped;
}

}  // namespace

struct MetricsLog::Impl {
  // A thread takes `mutex` before `queue_mutex`. `mutex` guards the file, `queue_mutex` what follows it.
  const std::string path;
  const std::size_t queue_bytes;
  FileDescriptor file;
  std::vector<Waiting> taken;      ///< being written; keeps its memory
  std::string outgoing;            ///< their lines, without what the file has
  std::size_t outgoing_bytes = 0;  ///< of `taken` in `bytes`
  mutable std::mutex mutex, queue_mutex;
  std::vector<Waiting> queue;
  std::size_t bytes = 0;  ///< in `queue` and `taken`
  std::int64_t dropped = 0, dropped_fast = 0;
  std::string error;     ///< why the file takes no records now
  bool gave_up = false;  ///< for good
  RecordSteps being_written, missing;

  Impl(std::string file_path, std::size_t most_bytes) : path(std::move(file_path)), queue_bytes(most_bytes) {}

  bool failed() const {
    const std::lock_guard lock(queue_mutex);
    return gave_up;
  }

  /// False: it was left out.
  bool enqueue(Waiting&& record) {
    const std::size_t size = record.bytes();
    bool is_first = false;
    {
      const std::lock_guard lock(queue_mutex);
      if (gave_up) return false;
      if (size <= queue_bytes && bytes <= queue_bytes - size) {
        bytes += size;
        queue.push_back(std::move(record));
        return true;
      }
      ++dropped;
      missing.add(record.step);
      is_first = error.empty() && ++dropped_fast == 1;
    }
    if (is_first)
      log_warning("{}: records come faster than they are written; what does not fit is left out", path);
    return false;
  }

  void work(WriterThread::Extent extent) {
    const std::lock_guard lock(mutex);
    flush_locked();
    if (extent == WriterThread::Extent::durable && file.is_open() && ::fdatasync(file.get()) != 0 &&
        errno != EINVAL)
      wait_for_room(file_error(ErrorKind::data, "flush metrics to disk", path, errno));
  }

  /// Holds `mutex`.
  void flush_locked() {
    while (!outgoing.empty() || take()) {
      if (!open()) return;
      if (!write_and_remove(file.get(), outgoing))
        return wait_for_room(file_error(ErrorKind::data, "write metrics", path, errno));
      const std::lock_guard lock(queue_mutex);
      bytes -= std::exchange(outgoing_bytes, 0);
      being_written = {};
    }
    note_room();
  }

  /// False: nothing waits.
  bool take() {
    {
      const std::lock_guard lock(queue_mutex);
      taken.swap(queue);
      for (const Waiting& record : taken) being_written.add(record.step);
    }
    for (const Waiting& record : taken) {
      outgoing += line_of(record);
      outgoing_bytes += record.bytes();
    }
    taken.clear();
    return !outgoing.empty();
  }

  /// What is recorded stays in the queue, and each later record is a try.
  void wait_for_room(const Error& reason) {
    {
      const std::lock_guard lock(queue_mutex);
      if (!error.empty()) return;
      error = reason.what();
      missing = {};
    }
    warn_that_they_wait(reason, "metrics");
  }

  void note_room() {
    RecordSteps lost;
    {
      const std::lock_guard lock(queue_mutex);
      if (error.empty() || gave_up) return;
      error.clear();
      lost = std::exchange(missing, {});
    }
    note_that_they_are_written(path, "metrics", lost, "record");
  }

  /// At the end.
  void note_lost() {
    RecordSteps lost;
    std::int64_t fast = 0;
    bool waits = false;
    {
      const std::lock_guard lock(queue_mutex);
      waits = !error.empty() && !gave_up;
      fast = dropped_fast;
      lost = being_written;
      for (const Waiting& record : queue) lost.add(record.step);
      lost.add(missing);
    }
    if (fast > 0)
      log_warning("{}: {} records were left out, because they came faster than they were written", path,
                  fast);
    if (waits && lost.count > 0) log_warning("{}: missing: {}; {}", path, lost.text("record"), error);
  }

  void fail(const Error& reason) {
    {
      const std::lock_guard lock(queue_mutex);
      error = reason.what();
      gave_up = true;
      queue.clear();
      bytes = 0;
      being_written = {};
    }
    outgoing.clear();
    outgoing_bytes = 0;
    log_warning("{}: {}; no more metrics are written, the run continues", reason.where(),
                reason.what_happened());
    file = FileDescriptor();
  }

  /// The contents without an incomplete last line; nullopt if there is no file.
  std::optional<std::string> whole_lines(bool& was_cut) const {
    was_cut = false;
    std::error_code code;
    if (!std::filesystem::exists(path, code) && !code) return std::nullopt;
    std::string text = read_whole_file(path);
    const std::size_t end = text.rfind('\n');
    const std::size_t length = end == std::string::npos ? 0 : end + 1;
    was_cut = length != text.size();
    text.resize(length);
    return text;
  }

  bool open() {
    if (failed()) return false;
    if (file.is_open()) return true;
    try {
      file = FileDescriptor(open_run_file(path, O_WRONLY | O_CREAT | O_APPEND, ErrorKind::data));
      if (const int code = errno; !file.is_open())
        is_full(code) ? wait_for_room(file_error(ErrorKind::data, "create", path, code))
                      : fail(file_error(ErrorKind::data, "open", path, code));
    } catch (const Error& refused) {
      fail(refused);
    }
    return file.is_open();
  }

  void drop(std::optional<Limits> after) {
    bool was_cut = false;
    const std::optional<std::string> text = whole_lines(was_cut);
    if (!text) return;
    std::string kept;
    std::size_t odd = was_cut ? 1 : 0;
    for (std::size_t begin = 0; begin < text->size();) {
      const std::size_t end = text->find('\n', begin) + 1;
      const std::string_view line = std::string_view(*text).substr(begin, end - begin);
      begin = end;
      if (!after) {
        kept += line;
        continue;
      }
      const Line what = judge(line, *after);
      if (what == Line::odd) ++odd;
      if (what == Line::kept) kept += line;
    }
    if (odd > 0) log_warning("{}: removed {} lines that are not records", path, odd);
    if (!was_cut && kept.size() == text->size()) return;
    file = FileDescriptor();  // a new file is about to replace it
    write_file_atomically(path, kept, ErrorKind::data);
  }
};

MetricsLog::MetricsLog(std::string path, std::size_t queue_bytes, double patience_seconds)
    : impl_(std::make_shared<Impl>(std::move(path), queue_bytes)) {
  try {
    impl_->drop(std::nullopt);
  } catch (const Error& error) {
    impl_->fail(error);
  }
  thread_ = std::make_unique<WriterThread>(
      "writer of metrics", [impl = impl_](WriterThread::Extent extent) { impl->work(extent); },
      WriterThread::Options{.patience_seconds = patience_seconds});
}

MetricsLog::~MetricsLog() {
  try {
    flush();
    impl_->note_lost();
  } catch (...) {  // out of memory
  }
}

void MetricsLog::append(std::int64_t step, std::int64_t epoch, std::string_view split,
                        std::span<const std::pair<std::string, double>> values, std::span<const List> lists) {
  std::vector<std::string_view> names = {"step", "epoch", "split"};
  for (const auto& [name, value] : values) names.push_back(name);
  for (const List& list : lists) names.push_back(list.name);
  require_different(std::move(names));
  Waiting record{step, epoch, std::string(split), {values.begin(), values.end()}, {}};
  for (const List& list : lists)
    record.lists.push_back({list.name, {list.values.begin(), list.values.end()}, list.columns});
  if (impl_->enqueue(std::move(record))) thread_->wake();
}

void MetricsLog::flush() { thread_->wait(WriterThread::Extent::written, impl_->path); }

void MetricsLog::sync() { thread_->wait(WriterThread::Extent::durable, impl_->path); }

void MetricsLog::drop_after(std::int64_t step, std::int64_t evaluated_step) {
  const std::lock_guard lock(impl_->mutex);
  impl_->flush_locked();
  if (impl_->failed()) return;
  try {
    impl_->drop(Limits{step, evaluated_step});
  } catch (const Error& error) {
    impl_->fail(error);
  }
}

std::string MetricsLog::error() const {
  const std::lock_guard lock(impl_->queue_mutex);
  return impl_->error;
}

std::int64_t MetricsLog::dropped() const {
  const std::lock_guard lock(impl_->queue_mutex);
  return impl_->dropped;
}

}  // namespace lockstep
