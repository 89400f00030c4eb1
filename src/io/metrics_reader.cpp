// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/metrics_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/run_file.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

/// Builds a record from the events of the parser: no object for each value.
class RecordSax {
 public:
  explicit RecordSax(MetricRecord& record) : record_(record) {}
  bool null() { return number(std::numeric_limits<double>::quiet_NaN()); }
  bool boolean(bool value) { return number(value ? 1 : 0); }
  bool number_integer(std::int64_t value) { return whole(value); }
  bool number_unsigned(std::uint64_t value) { return whole(static_cast<std::int64_t>(value)); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool string(std::string& value) {
    if (depth_ == 1 && key_ == "split") record_.split = value;
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return ++depth_ < kDeepest; }
  bool end_object() { return --depth_ >= 0; }
  bool start_array(std::size_t) { return ++depth_ < kDeepest && depth_ > 1; }
  bool end_array() { return --depth_ >= 0; }
  bool key(std::string& name) {
    if (depth_ == 1) key_ = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }
  bool has_step() const { return has_step_; }

 private:
  static constexpr int kDeepest = 16;
  bool whole(std::int64_t value) {
    if (depth_ != 1) return true;
    if (key_ == "step") {
      record_.step = value;
      has_step_ = true;
    } else if (key_ == "epoch") {
      record_.epoch = value;
    } else {
      number(static_cast<double>(value));
    }
    return true;
  }
  bool number(double value) {
    if (depth_ == 1 && key_ != "step" && key_ != "epoch") record_.values.emplace_back(key_, value);
    return true;
  }

  MetricRecord& record_;
  std::string key_;
  int depth_ = 0;
  bool has_step_ = false;
};

bool parse(std::string_view line, MetricRecord& record) {
  record.step = record.epoch = 0;
  record.split.clear();
  record.values.clear();
  RecordSax sax(record);
  return nlohmann::json::sax_parse(line, &sax) && sax.has_step();
}

}  // namespace

bool MetricsReader::read(FunctionRef<void()> begin, FunctionRef<void(const MetricRecord&)> record) {
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return false;
    throw file_error(ErrorKind::data, "open", path_, errno);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw file_error(ErrorKind::data, "read", path_, errno);
  if (!begun_ || status.st_dev != device_ || status.st_ino != inode_ || status.st_size < offset_) {
    begun_ = true;
    device_ = status.st_dev;
    inode_ = status.st_ino;
    offset_ = odd_lines_ = 0;
    begin();
  }
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 20);
  MetricRecord one;
  for (;;) {
    const ssize_t count =
        ::pread(file.get(), buffer.data(), buffer.size(), offset_ + static_cast<std::int64_t>(text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error(ErrorKind::data, "read", path_, errno);
    if (count == 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    std::size_t at = 0;
    for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      if (parse(std::string_view(text).substr(at, end - at), one))
        record(one);
      else
        ++odd_lines_;
    }
    offset_ += static_cast<std::int64_t>(at);
    text.erase(0, at);
  }
}

}  // namespace lockstep
