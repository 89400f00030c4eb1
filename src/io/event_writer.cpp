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
  std::string path, error;
  EventQueue queue;
  bool is_open = false;
  bool warned = false;    ///< of a full queue
  bool unsynced = false;  ///< written since the last sync(); under `writing`
  FileDescriptor file;
  EventQueue::Batch batch;                    ///< being written; keeps its memory
  event_file::Event number_event;             ///< likewise
  std::string outgoing;                       ///< likewise
  std::unordered_set<std::string> described;  ///< tags whose metadata the file has

  explicit Impl(std::size_t queue_bytes) : queue(queue_bytes) {}

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

  void open(const std::string& folder, const Options& options) {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (code)
      return fail(file_error(ErrorKind::data, "create the folder for event files", folder, code.value()));
    const double now = std::floor(now_seconds());
    const std::string name =
        (std::filesystem::path(folder) /
         fmt::format("events.out.tfevents.{:010.0f}.{}.{}{}", now, host_name(), ::getpid(), options.suffix))
            .string();
    std::string candidate = name;
    // A further writer of this process in the same second gets a suffix.
    for (int i = 1; i <= kMostFilesPerSecond; ++i) {
      file =
          FileDescriptor(::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
      if (file.is_open() || errno != EEXIST) break;
      candidate = fmt::format("{}.{}", name, i);
    }
    if (!file.is_open()) return fail(file_error(ErrorKind::data, "create the event file", candidate, errno));
    path = candidate;
    event_file::Event event;
    event.set_wall_time(now);
    event.set_file_version("brain.Event:2");
    append_record(outgoing, event);
    if (!write_outgoing()) return;
    is_open = true;
  }

  /// Any thread. push(queue) returns false if something was dropped. True: the thread has enough to write.
  template <typename Push>
  bool enqueue(Push&& push) {
    bool wakes = false, warns = false;
    {
      const std::lock_guard lock(mutex);
      if (!is_open) return false;
      const bool below = queue.waiting_bytes() < kWakeBytes;
      if (!push(queue)) warns = !std::exchange(warned, true);
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
    {
      const std::lock_guard lock(mutex);
      if (!is_open || queue.empty()) return;
      queue.take(batch);
    }
    bool good = true;
    batch.each(
        [&](std::int64_t step, double wall_time, std::string_view tag, float value) {
          if (good) append_number(step, wall_time, tag, value);
          if (outgoing.size() >= kWriteBytes) good = good && write_outgoing();
        },
        [&](QueuedEvent& event) {
          if (good) append_event(event);
          if (outgoing.size() >= kWriteBytes) good = good && write_outgoing();
        });
    if (good) write_outgoing();
    {
      const std::lock_guard lock(mutex);
      queue.done(batch);
    }
    batch.clear();
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

  /// False after an error.
  bool write_outgoing() {
    unsynced = true;
    if (!write_fully(file.get(), outgoing.data(), outgoing.size())) {
      fail(file_error(ErrorKind::data, "write events", path, errno));
      return false;
    }
    outgoing.clear();
    return true;
  }

  void sync_locked() {
    // EINVAL: the file system cannot make files durable.
    if (file.is_open() && std::exchange(unsynced, false) && ::fdatasync(file.get()) != 0 && errno != EINVAL)
      fail(file_error(ErrorKind::data, "flush events to disk", path, errno));
  }

  void close_locked() {
    if (!file.is_open()) return;
    {
      const std::lock_guard closing(mutex);
      is_open = false;
      if (queue.dropped() > 0)
        log_warning("{}: {} values were left out, because events came faster than they were written", path,
                    queue.dropped());
    }
    if (file.close() != 0) fail(file_error(ErrorKind::data, "close the event file", path, errno));
  }
};

EventWriter::EventWriter(const std::string& folder, const Options& options)
    : impl_(std::make_shared<Impl>(options.queue_bytes)) {
  impl_->open(folder, options);
  thread_ = std::make_unique<WriterThread>(
      "writer of event files", [impl = impl_](WriterThread::Extent extent) { impl->work(extent); },
      WriterThread::Options{.every_seconds = options.flush_seconds,
                            .patience_seconds = options.patience_seconds});
}

template <typename Push>
void EventWriter::enqueue(Push&& push) {
  if (impl_->enqueue(std::forward<Push>(push))) thread_->wake();
}

EventWriter::~EventWriter() {
  try {
    close();
  } catch (...) {  // out of memory for the message
  }
}

void EventWriter::scalar(std::string_view tag, std::int64_t step, double value) {
  const double now = now_seconds();
  enqueue([&](EventQueue& queue) { return queue.push(tag, step, now, static_cast<float>(value)); });
}

void EventWriter::add(std::int64_t step, std::vector<SummaryValue> values) {
  QueuedEvent event{now_seconds(), step, std::move(values)};
  enqueue([&](EventQueue& queue) { return queue.push(std::move(event)); });
}

void EventWriter::graph(std::string graph_def) {
  QueuedEvent event{now_seconds(), 0, GraphNote{std::move(graph_def)}};
  enqueue([&](EventQueue& queue) { return queue.push(std::move(event)); });
}

void EventWriter::run_metadata(std::string_view tag, std::int64_t step, std::string serialised) {
  QueuedEvent event{now_seconds(), step, RunMetadataNote{std::string(tag), std::move(serialised)}};
  enqueue([&](EventQueue& queue) { return queue.push(std::move(event)); });
}

void EventWriter::session_log(SessionStatus status, std::int64_t step, std::string_view checkpoint_path,
                              std::string_view message) {
  QueuedEvent event{now_seconds(), step,
                    SessionNote{status, std::string(checkpoint_path), std::string(message)}};
  enqueue([&](EventQueue& queue) { return queue.push(std::move(event)); });
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
