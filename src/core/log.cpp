// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include "core/cpu.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "core/log_once.h"
#include "core/run_file.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// Appends each line at once. A line that cannot be written is lost: the log must not end a run.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(int descriptor) : descriptor_(descriptor) {}
  ~FileSink() override { ::close(descriptor_); }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const char* at = line.data();
    for (std::size_t left = line.size(); left > 0;) {
      const ssize_t written = ::write(descriptor_, at, left);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      at += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  void flush_() override {}

 private:
  const int descriptor_;
};

/// Standard error. It may leave out warnings that it has shown.
class TerminalSink final : public spdlog::sinks::stderr_sink_mt {
  using Base = spdlog::sinks::stderr_sink_mt;

 public:
  void show_warnings_once() { once_ = true; }
  void log(const spdlog::details::log_msg& message) override {
    if (once_ && message.level == spdlog::level::warn) {
      const std::lock_guard lock(shown_mutex_);
      if (!shown_.emplace(message.payload.data(), message.payload.size()).second) return;
    }
    Base::log(message);
  }

 private:
  std::atomic<bool> once_ = false;
  std::mutex shown_mutex_;
  std::set<std::string> shown_;
};

const std::shared_ptr<TerminalSink>& terminal() {
  static const auto sink = std::make_shared<TerminalSink>();
  return sink;
}

// Logs to standard error; standard output is for results (JSON, tables).
spdlog::logger& logger() {
  static const auto instance = [] {
    auto created = std::make_shared<spdlog::logger>("lockstep", terminal());
    created->set_pattern("%v");
    created->flush_on(spdlog::level::info);
    return created;
  }();
  return *instance;
}

}  // namespace

void configure_log(int rank, LogLevel level) {
  // `level` limits standard error only; a log file of the run receives info and above.
  logger().set_level(to_spdlog(std::min(level, LogLevel::info)));
  logger().sinks().front()->set_level(to_spdlog(rank > 0 ? std::max(level, LogLevel::warning) : level));
  logger().sinks().front()->set_pattern(rank > 0 ? fmt::format("rank {} on {}: %v", rank, host_name())
                                                 : "%v");
}

void log_to_file(const std::string& path) {
  const int descriptor = open_run_file(path, O_WRONLY | O_CREAT | O_APPEND, ErrorKind::config);
  if (descriptor < 0)
    throw Error(ErrorKind::config, fmt::format("cannot open the log: {}", std::strerror(errno)), path,
                "Check the permissions of the run directory.");
  auto sink = std::make_shared<FileSink>(descriptor);
  sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger().sinks().resize(1);
  logger().sinks().push_back(std::move(sink));
}

void end_log_file() { logger().sinks().resize(1); }

void show_each_warning_once() { terminal()->show_warnings_once(); }

void log_line(LogLevel level, std::string_view message) {
  const std::string text = shown_message(message);
  if (level >= LogLevel::warning)
    logger().log(to_spdlog(level), "{}: {}", level == LogLevel::warning ? "warning" : "error", text);
  else
    logger().log(to_spdlog(level), "{}", text);
}

}  // namespace lockstep
