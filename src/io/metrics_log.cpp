// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/metrics_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "core/log.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

/// Records after these steps are dropped.
struct Limits {
  std::int64_t step, evaluated_step;
};

enum class Line { kept, dropped, odd };
Line judge(std::string_view line, const Limits& limits) {
  const Json record = Json::parse(line, nullptr, false);
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer())
    return Line::odd;
  const bool evaluation = record.contains("split") && record["split"] == "eval";
  const std::int64_t limit = evaluation ? limits.evaluated_step : limits.step;
  return record["step"].get<std::int64_t>() <= limit ? Line::kept : Line::dropped;
}

}  // namespace

struct MetricsLog::Impl {
  std::string path, error;
  FileDescriptor file;
  mutable std::mutex mutex;

  void fail(const Error& reason) {
    error = reason.what();
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
    if (!error.empty()) return false;
    if (file.is_open()) return true;
    try {
      file = FileDescriptor(open_run_file(path, O_WRONLY | O_CREAT | O_APPEND, ErrorKind::data));
      if (!file.is_open()) fail(file_error(ErrorKind::data, "open", path, errno));
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

MetricsLog::MetricsLog(std::string path) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  try {
    impl_->drop(std::nullopt);
  } catch (const Error& error) {
    impl_->fail(error);
  }
}

MetricsLog::~MetricsLog() = default;

void MetricsLog::append(std::int64_t step, std::int64_t epoch, std::string_view split,
                        std::span<const std::pair<std::string, double>> values, std::span<const List> lists) {
  Json record;
  record["step"] = step;
  record["epoch"] = epoch;
  record["split"] = split;
  for (const auto& [name, value] : values) {
    LOCKSTEP_CHECK(!record.contains(name), "two values of a record are called '{}'", name);
    record[name] = value;
  }
  for (const List& list : lists) {
    LOCKSTEP_CHECK(!record.contains(list.name), "two values of a record are called '{}'", list.name);
    Json& numbers = record[list.name] = Json::array();
    for (std::size_t i = 0; i < list.values.size(); ++i) {
      if (list.columns > 0 && i % static_cast<std::size_t>(list.columns) == 0)
        numbers.push_back(Json::array());
      (list.columns > 0 ? numbers.back() : numbers).push_back(list.values[i]);
    }
  }
  // dump() writes NaN and infinities as null.
  const std::string line = record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(impl_->mutex);
  if (impl_->open() && !write_fully(impl_->file.get(), line.data(), line.size()))
    impl_->fail(file_error(ErrorKind::data, "write metrics", impl_->path, errno));
}

void MetricsLog::sync() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->file.is_open() && ::fdatasync(impl_->file.get()) != 0 && errno != EINVAL)
    impl_->fail(file_error(ErrorKind::data, "flush metrics to disk", impl_->path, errno));
}

void MetricsLog::drop_after(std::int64_t step, std::int64_t evaluated_step) {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->error.empty()) return;
  try {
    impl_->drop(Limits{step, evaluated_step});
  } catch (const Error& error) {
    impl_->fail(error);
  }
}

std::string MetricsLog::error() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->error;
}

}  // namespace lockstep
