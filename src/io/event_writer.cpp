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
#include "io/atomic_file.h"
#include "io/crc32c.h"
#include "io/event_messages.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

constexpr std::size_t kBufferBytes = 65536;
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
void append_record(std::string& to, const std::string& payload) {
  const std::size_t start = to.size();
  append_little_endian(to, static_cast<std::uint64_t>(payload.size()));
  append_little_endian(to, masked_crc32c(to.data() + start, sizeof(std::uint64_t)));
  to += payload;
  append_little_endian(to, masked_crc32c(payload.data(), payload.size()));
}

}  // namespace

struct EventWriter::Impl {
  // A thread takes `writing` before `mutex`. `writing` guards the file and `outgoing`, `mutex` the rest.
  mutable std::mutex writing, mutex;
  std::string path, error, buffer, outgoing;
  std::unordered_set<std::string> described;  ///< tags whose metadata the file has
  bool is_open = false;
  bool unsynced = false;  ///< written since the last sync(); under `writing`
  FileDescriptor file;

  void fail(const Error& reason) {
    log_warning("{}: {}; no more events are written, the run continues", reason.where(),
                reason.what_happened());
    file = FileDescriptor();
    outgoing.clear();
    const std::lock_guard lock(mutex);
    error = reason.what();
    is_open = false;
    buffer.clear();
  }

  void open(const std::string& folder) {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (code)
      return fail(file_error(ErrorKind::data, "create the folder for event files", folder, code.value()));
    const double now = std::floor(now_seconds());
    const std::string name =
        (std::filesystem::path(folder) /
         fmt::format("events.out.tfevents.{:010.0f}.{}.{}", now, host_name(), ::getpid()))
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
    is_open = true;
    event_file::Event event;
    event.set_wall_time(now);
    event.set_file_version("brain.Event:2");
    append(event);
    flush();
  }

  void append(const event_file::Event& event) {
    bool full = false;
    {
      const std::lock_guard lock(mutex);
      if (!is_open) return;
      append_record(buffer, event.SerializeAsString());
      full = buffer.size() >= kBufferBytes;
    }
    if (full) flush();
  }

  void flush() {
    const std::lock_guard lock(writing);
    flush_locked();
  }

  // Holds `writing`.
  void flush_locked() {
    {
      const std::lock_guard lock(mutex);
      if (!is_open) return;
      outgoing.swap(buffer);  // both keep their memory
    }
    if (outgoing.empty()) return;
    unsynced = true;
    if (!write_fully(file.get(), outgoing.data(), outgoing.size()))
      return fail(file_error(ErrorKind::data, "write events", path, errno));
    outgoing.clear();
  }

  void sync() {
    const std::lock_guard lock(writing);
    flush_locked();
    // EINVAL: the file system cannot make files durable.
    if (file.is_open() && std::exchange(unsynced, false) && ::fdatasync(file.get()) != 0 && errno != EINVAL)
      fail(file_error(ErrorKind::data, "flush events to disk", path, errno));
  }

  void close() {
    const std::lock_guard lock(writing);
    flush_locked();
    if (!file.is_open()) return;
    {
      const std::lock_guard closing(mutex);
      is_open = false;
    }
    if (file.close() != 0) fail(file_error(ErrorKind::data, "close the event file", path, errno));
  }
};

EventWriter::EventWriter(const std::string& folder) : impl_(std::make_unique<Impl>()) { impl_->open(folder); }

EventWriter::~EventWriter() {
  try {
    close();
  } catch (...) {  // out of memory for the message
  }
}

void EventWriter::scalar(std::string_view tag, std::int64_t step, double value) {
  event_file::Event event;
  event.set_wall_time(now_seconds());
  event.set_step(step);
  event_file::Summary::Value* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  entry->set_simple_value(static_cast<float>(value));
  impl_->append(event);
}

void EventWriter::add(std::int64_t step, std::vector<SummaryValue> values) {
  event_file::Event event;
  event.set_wall_time(now_seconds());
  event.set_step(step);
  for (SummaryValue& value : values) {
    bool first = false;
    if (!value.metadata.empty()) {
      const std::lock_guard lock(impl_->mutex);
      first = impl_->described.insert(value.tag).second;
    }
    to_message(std::move(value), first, *event.mutable_summary()->add_value());
  }
  impl_->append(event);
}

void EventWriter::restart_from(std::int64_t step) {
  event_file::Event event;
  event.set_wall_time(now_seconds());
  event.set_step(step);
  event.mutable_session_log()->set_status(event_file::SessionLog::START);
  impl_->append(event);
}

void EventWriter::flush() { impl_->flush(); }
void EventWriter::sync() { impl_->sync(); }
void EventWriter::close() { impl_->close(); }

std::string EventWriter::path() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->path;
}

std::string EventWriter::error() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->error;
}

}  // namespace lockstep
