// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/event_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "core/cpu.h"
#include "core/log.h"
#include "event.pb.h"
#include "io/atomic_file.h"
#include "io/crc32c.h"
#include "io/event_messages.h"
#include "io/event_queue.h"
#include "io/file_descriptor.h"
#include "io/unwritten.h"
#include "io/writer_thread.h"

namespace lockstep {

namespace {

constexpr std::size_t kWakeBytes = 65536;    // that wait
constexpr std::size_t kWriteBytes = 262144;  // at once
constexpr int kMostFilesPerSecond = 100;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <typename Integer>
void append_little_endian(std::string& to, Integer value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte)
    to.push_back(static_cast<char>((value >> (8 * byte)) & 0xFF));
}

/// One TFRecord: length, its masked CRC, payload, its masked CRC.
void append_record(std::string& to, const event_file::Event& event) {
  const std::size_t start = to.size();
  const std::size_t bytes = event.ByteSizeLong();
  append_little_endian(to, static_cast<std::uint64_t>(bytes));
  append_little_endian(to, masked_crc32c(to.data() + start, sizeof(std::uint64_t)));
  const std::size_t payload = to.size();
  to.resize(payload + bytes);
  event.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(to.data() + payload));
  append_little_endian(to, masked_crc32c(to.data() + payload, bytes));
}

}  // namespace

struct EventWriter::Impl {
  // A thread takes `writing` before `mutex`. `writing` guards what encodes and writes, `mutex` the rest.
  mutable std::mutex writing, mutex;
  std::string path, error;  ///< why the file takes no events now
  EventQueue queue;
  bool is_open = false;  ///< takes events
  bool warned = false;   ///< of a full queue
  std::int64_t dropped_fast = 0;
  RecordSteps waiting, missing;  ///< those that wait include what is being written
  bool unsynced = false;         ///< written since the last sync(); under `writing`
  FileDescriptor file;
  EventQueue::Batch batch;         ///< being written; keeps its memory
  event_file::Event number_event;  ///< likewise
  std::string outgoing;            ///< without what the file has
  RecordSteps being_written;
  std::unordered_set<std::string> described;  ///< tags whose metadata the file has

  const std::string folder, suffix;

  Impl(std::string event_folder, const Options& options)
      : queue(options.queue_bytes), folder(std::move(event_folder)), suffix(options.suffix) {}

  /// What is recorded stays in the queue until a later try.
  void wait_for_room(const Error& reason) {
    {
      const std::lock_guard lock(mutex);
      if (!error.empty()) return;
      error = reason.what();
      missing = {};
    }
    warn_that_they_wait(reason, "events");
  }

  void note_room() {
    RecordSteps lost;
    {
      const std::lock_guard lock(mutex);
      if (error.empty() || !is_open) return;
      error.clear();
      lost = std::exchange(missing, {});
    }
    note_that_they_are_written(path, "events", lost, "event");
  }

  void fail(const Error& reason) {
    log_warning("{}: {}; no more events are written, the run continues", reason.where(),
                reason.what_happened());
    file = FileDescriptor();
    outgoing.clear();
    const std::lock_guard lock(mutex);
    error = reason.what();
    is_open = false;
    queue.drop_all();
  }

  /// Creates the file, with its first event. If the disk has no room for it now, events wait, and a later
  /// call tries again.
  void open() {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (code) return not_created("create the folder for event files", folder, code.value());
    const double now = std::floor(now_seconds());
    const std::string name =
        (std::filesystem::path(folder) /
         fmt::format("events.out.tfevents.{:010.0f}.{}.{}{}", now, host_name(), ::getpid(), suffix))
            .string();
    std::string candidate = name;
    // A further writer of this process in the same second gets a suffix.
    for (int i = 1; i <= kMostFilesPerSecond; ++i) {
      file =
          FileDescriptor(::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
      if (file.is_open() || errno != EEXIST) break;
      candidate = fmt::format("{}.{}", name, i);
    }
    if (!file.is_open()) return not_created("create the event file", candidate, errno);
    event_file::Event event;
    event.set_wall_time(now);
    event.set_file_version("brain.Event:2");
    append_record(outgoing, event);
    {
      const std::lock_guard lock(mutex);
      path = candidate;
      is_open = true;
    }
    write_outgoing();
  }

  void not_created(const char* what, const std::string& where, int code) {
    const Error reason = file_error(ErrorKind::data, what, where, code);
    if (!is_full(code)) return fail(reason);
    {
      const std::lock_guard lock(mutex);
      if (path.empty()) path = folder;
      is_open = true;
    }
    wait_for_room(reason);
  }

  /// Any thread. push(queue) returns false if something was dropped. True: the thread has enough to write.
  template <typename Push>
  bool enqueue(std::int64_t step, Push&& push) {
    bool wakes = false, warns = false;
    {
      const std::lock_guard lock(mutex);
      if (!is_open) return false;
      const bool below = queue.waiting_bytes() < kWakeBytes;
      const std::int64_t before = queue.dropped();
      if (push(queue)) {
        waiting.add(step);
      } else {
        missing.add(step);
        if (error.empty()) {
          warns = !std::exchange(warned, true);
          dropped_fast += queue.dropped() - before;
        }
      }
      wakes = below && queue.waiting_bytes() >= kWakeBytes;
    }
    if (warns)
      log_warning("{}: events come faster than they are written; what does not fit is left out", path);
    return wakes;
  }

  void work(WriterThread::Extent extent) {
    const std::lock_guard lock(writing);
    flush_locked();
    if (extent == WriterThread::Extent::durable) sync_locked();
    if (extent == WriterThread::Extent::closed) close_locked();
  }

  // From here on: holds `writing`.

  void flush_locked() {
    if (!file.is_open() && accepts()) open();
    if (!file.is_open()) return;
    while (!outgoing.empty() || take()) {
      if (!write_outgoing()) return;
      {
        const std::lock_guard lock(mutex);
        queue.done(batch);
        being_written = {};
      }
      batch.clear();
    }
    note_room();
  }

  bool accepts() const {
    const std::lock_guard lock(mutex);
    return is_open;
  }

  /// Encodes what waits, and writes it from time to time. False: nothing waits.
  bool take() {
    {
      const std::lock_guard lock(mutex);
      if (!is_open || queue.empty()) return false;
      queue.take(batch);
      being_written = std::exchange(waiting, {});
    }
    bool good = true;
    const auto write_much = [&] {
      if (outgoing.size() >= kWriteBytes) good = good && write_outgoing();
    };
    batch.each(
        [&](std::int64_t step, double wall_time, std::string_view tag, float value) {
          append_number(step, wall_time, tag, value);
          write_much();
        },
        [&](QueuedEvent& event) {
          append_event(event);
          write_much();
        });
    return true;
  }

  void append_number(std::int64_t step, double wall_time, std::string_view tag, float value) {
    number_event.set_wall_time(wall_time);
    number_event.set_step(step);
    event_file::Summary& summary = *number_event.mutable_summary();
    event_file::Summary::Value& entry =
        summary.value_size() == 0 ? *summary.add_value() : *summary.mutable_value(0);
    set_text(*entry.mutable_tag(), tag);
    entry.set_simple_value(value);
    append_record(outgoing, number_event);
  }

  void append_event(QueuedEvent& queued) {
    event_file::Event event;
    event.set_wall_time(queued.wall_time);
    event.set_step(queued.step);
    if (auto* const values = std::get_if<std::vector<SummaryValue>>(&queued.what)) {
      for (SummaryValue& value : *values) {
        const bool first = !value.metadata.empty() && described.insert(value.tag).second;
        to_message(std::move(value), first, *event.mutable_summary()->add_value());
      }
    } else {
      to_message(std::move(queued), event);
    }
    append_record(outgoing, event);
  }

  /// False: some of it waits for a later try.
  bool write_outgoing() {
    unsynced = true;
    if (write_and_remove(file.get(), outgoing)) return true;
    wait_for_room(file_error(ErrorKind::data, "write events", path, errno));
    return false;
  }

  void sync_locked() {
    // EINVAL: the file system cannot make files durable.
    if (file.is_open() && std::exchange(unsynced, false) && ::fdatasync(file.get()) != 0 && errno != EINVAL)
      wait_for_room(file_error(ErrorKind::data, "flush events to disk", path, errno));
  }

  void close_locked() {
    if (!accepts()) return;
    {
      const std::lock_guard closing(mutex);
      is_open = false;
      if (dropped_fast > 0)
        log_warning("{}: {} values were left out, because events came faster than they were written", path,
                    dropped_fast);
      RecordSteps lost = being_written;
      lost.add(waiting);
      lost.add(missing);
      if (!error.empty() && lost.count > 0)
        log_warning("{}: missing: {}; {}", path, lost.text("event"), error);
    }
    if (file.is_open() && file.close() != 0)
      fail(file_error(ErrorKind::data, "close the event file", path, errno));
  }
};

EventWriter::EventWriter(const std::string& folder, const Options& options)
    : impl_(std::make_shared<Impl>(folder, options)) {
  impl_->open();
  thread_ = std::make_unique<WriterThread>(
      "writer of event files", [impl = impl_](WriterThread::Extent extent) { impl->work(extent); },
      WriterThread::Options{.every_seconds = options.flush_seconds,
                            .patience_seconds = options.patience_seconds});
}

template <typename Push>
void EventWriter::enqueue(std::int64_t step, Push&& push) {
  if (impl_->enqueue(step, std::forward<Push>(push))) thread_->wake();
}

EventWriter::~EventWriter() {
  try {
    close();
  } catch (...) {  // out of memory for the message
  }
}

void EventWriter::scalar(std::string_view tag, std::int64_t step, double value) {
  const double now = now_seconds();
  enqueue(step, [&](EventQueue& queue) { return queue.push(tag, step, now, static_cast<float>(value)); });
}

void EventWriter::add(std::int64_t step, std::vector<SummaryValue> values) {
  QueuedEvent event{now_seconds(), step, std::move(values)};
  enqueue(step, [&](EventQueue& queue) { return queue.push(std::move(event)); });
}

void EventWriter::graph(std::string graph_def) {
  QueuedEvent event{now_seconds(), 0, GraphNote{std::move(graph_def)}};
  enqueue(0, [&](EventQueue& queue) { return queue.push(std::move(event)); });
}

void EventWriter::run_metadata(std::string_view tag, std::int64_t step, std::string serialised) {
  QueuedEvent event{now_seconds(), step, RunMetadataNote{std::string(tag), std::move(serialised)}};
  enqueue(step, [&](EventQueue& queue) { return queue.push(std::move(event)); });
}

void EventWriter::session_log(SessionStatus status, std::int64_t step, std::string_view checkpoint_path,
                              std::string_view message) {
  QueuedEvent event{now_seconds(), step,
                    SessionNote{status, std::string(checkpoint_path), std::string(message)}};
  enqueue(step, [&](EventQueue& queue) { return queue.push(std::move(event)); });
}

void EventWriter::request_flush() { thread_->wake(); }
void EventWriter::flush() { thread_->wait(WriterThread::Extent::written, path()); }
void EventWriter::sync() { thread_->wait(WriterThread::Extent::durable, path()); }
void EventWriter::close() { thread_->wait(WriterThread::Extent::closed, path()); }

std::int64_t EventWriter::dropped() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->queue.dropped();
}

std::string EventWriter::path() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->path;
}

std::string EventWriter::error() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->error;
}

}  // namespace lockstep
