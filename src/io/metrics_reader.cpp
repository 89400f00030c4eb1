// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/metrics_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>

#include "core/run_file.h"
#include "io/file_descriptor.h"
#include "io/json.h"

namespace lockstep {

namespace {

/// Builds a record from the events of the parser: no object for each value. False: the line is no record.
class RecordEvents final : public JsonEvents {
 public:
  explicit RecordEvents(MetricRecord& record) : record_(record) {}
  bool null() override { return number(std::numeric_limits<double>::quiet_NaN()); }
  bool boolean(bool value) override { return number(value ? 1 : 0); }
  bool integer(std::int64_t value) override { return whole(value); }
  bool unsigned_integer(std::uint64_t value) override { return whole(static_cast<std::int64_t>(value)); }
  bool real(double value) override { return number(value); }
  bool string(std::string& value) override {
    if (depth_ == 1 && passed_over_ == 0 && key_ == "split") record_.split = value;
    return true;
  }
  bool begin_object() override {
    if (depth_ > 0)
      ++passed_over_;  // a map in a record means nothing here
    else
      ++depth_;
    return true;
  }
  bool end_object() override {
    --(passed_over_ > 0 ? passed_over_ : depth_);
    return true;
  }
  bool begin_array() override {
    if (passed_over_ > 0) return ++passed_over_ > 0;
    if (++depth_ == kInList)
      record_.lists.push_back({key_, {}, 0});
    else if (depth_ == kInRow)
      row_begin_ = list().values.size();
    return depth_ >= kInList && depth_ <= kInRow;
  }
  bool end_array() override {
    if (passed_over_ > 0) return --passed_over_ >= 0;
    if (depth_-- != kInRow) return true;
    const auto columns = static_cast<std::int64_t>(list().values.size() - row_begin_);
    const bool first = row_begin_ == 0;
    const bool fits = first ? columns > 0 : columns == list().columns;
    list().columns = columns;
    return fits;
  }
  bool key(std::string& name) override {
    if (depth_ == 1 && passed_over_ == 0) key_ = name;
    return true;
  }
  bool is_record() const { return has_step_ && !record_.split.empty(); }

 private:
  static constexpr int kInList = 2, kInRow = 3;
  MetricList& list() { return record_.lists.back(); }
  bool whole(std::int64_t value) {
    if (passed_over_ > 0) return true;
    if (depth_ != 1) return number(static_cast<double>(value));
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
    if (passed_over_ > 0) return true;
    if (depth_ > 1)
      list().values.push_back(value);
    else if (key_ != "step" && key_ != "epoch")
      record_.values.emplace_back(key_, value);
    return depth_ > 0;
  }

  MetricRecord& record_;
  std::string key_;
  int depth_ = 0, passed_over_ = 0;
  std::size_t row_begin_ = 0;
  bool has_step_ = false;
};

bool parse(std::string_view line, MetricRecord& record) {
  record.step = record.epoch = 0;
  record.split.clear();
  record.values.clear();
  record.lists.clear();
  RecordEvents events(record);
  try {
    return read_json(line, events) && events.is_record();
  } catch (const JsonError&) {
    return false;
  }
}

}  // namespace

bool MetricsReader::read(FunctionRef<void()> begin, FunctionRef<void(const MetricRecord&)> record) {
  const FileDescriptor file(open_run_file(path_, O_RDONLY, ErrorKind::data));
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
    if (count == 0) {
      ends_in_a_line_ = !text.empty();
      return true;
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
    std::size_t at = 0;
    for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string_view line = std::string_view(text).substr(at, end - at);
      if (parse(line, one))
        record(one);
      else if (line.find_first_not_of(" \t\r") != std::string_view::npos)
        ++odd_lines_;
    }
    offset_ += static_cast<std::int64_t>(at);
    text.erase(0, at);
  }
}

}  // namespace lockstep
