// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/events/events_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/name_list.h"
#include "io/event_reader.h"
#include "io/json.h"
#include "io/output_file.h"
#include "tools/events/event_tags.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// One value, and its line of the export.
struct Row {
  std::int64_t step;
  std::string line;
};

/// In quotes where CSV needs them (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

template <typename Element>
Json elements(const std::string& bytes) {
  Json values = Json::array();
  for (std::size_t at = 0; at + sizeof(Element) <= bytes.size(); at += sizeof(Element)) {
    Element element{};
    std::memcpy(&element, bytes.data() + at, sizeof element);
    if constexpr (std::is_same_v<Element, float>)
      values.push_back(shortest_double(static_cast<double>(element)));
    else
      values.push_back(element);
  }
  return values;
}

Json contents_of(const TensorData& tensor) {
  switch (tensor.dtype) {
    case SummaryDType::f32:
      return elements<float>(tensor.bytes);
    case SummaryDType::f64:
      return elements<double>(tensor.bytes);
    case SummaryDType::i32:
      return elements<std::int32_t>(tensor.bytes);
    case SummaryDType::i64:
      return elements<std::int64_t>(tensor.bytes);
    case SummaryDType::u8:
    case SummaryDType::boolean:
      return elements<std::uint8_t>(tensor.bytes);
    case SummaryDType::text:
      return tensor.strings;
  }
  return nullptr;
}

struct IntoJson {
  Json& record;

  void operator()(float value) const { record["value"] = shortest_double(static_cast<double>(value)); }
  void operator()(const HistogramData& data) const {
    record.update({{"min", data.min},
                   {"max", data.max},
                   {"num", data.num},
                   {"sum", data.sum},
                   {"sum_squares", data.sum_squares},
                   {"limits", data.limits},
                   {"counts", data.counts}});
  }
  void operator()(const ImageData& data) const {
    record.update({{"height", data.height}, {"width", data.width}, {"bytes", data.png.size()}});
  }
  void operator()(const AudioData& data) const {
    record.update(
        {{"sample_rate", data.sample_rate}, {"frames", data.frames}, {"bytes", data.encoded.size()}});
  }
  void operator()(const TensorData& data) const {
    record["shape"] = data.shape;
    record["values"] = contents_of(data);
  }
};

class Export {
 public:
  Export(bool is_csv, const std::string& tags) : is_csv_(is_csv), tags_(tags) {}

  void read(const std::string& path, const std::string& run) {
    EventReader reader(path);
    std::vector<Row>& rows = rows_[run];
    while (auto event = reader.next()) {
      if (event->restart) std::erase_if(rows, [&](const Row& row) { return row.step >= event->step; });
      for (EventValue& value : event->values) add(*event, value, run, rows);
    }
    if (!reader.note().empty()) log_warning("{}", reader.note());
  }

  /// Throws Error(data) if there is nothing, because no tag matches.
  void require_any(const std::string& target, const std::string& tags) const {
    if (chosen_ > 0 || tags_.all()) return;
    throw Error(
        ErrorKind::data, fmt::format("no value has a tag that matches '{}'", tags), target,
        seen_.empty() ? "The files hold no values." : fmt::format("There are: {}.", name_list(seen_)));
  }

  void write(OutputFile& file) const {
    if (is_csv_) file.append("run,tag,step,wall_time,value\n");
    for (const auto& [run, rows] : rows_)
      for (const Row& row : rows) file.append(row.line);
  }

 private:
  /// The numbers of TensorFlow 2 and of others are tensors of one element of the plugin scalars; a file says
  /// so with the first value of a tag.
  void make_scalar(EventValue& value, const std::string& run) {
    const auto* const tensor = std::get_if<TensorData>(&value.data);
    if (tensor == nullptr) return;
    const auto key = std::make_pair(run, value.tag);
    if (value.metadata.plugin == "scalars") scalars_.insert(key);
    if (!scalars_.contains(key) || tensor->dtype != SummaryDType::f32 ||
        tensor->bytes.size() != sizeof(float))
      return;
    float number = 0;
    std::memcpy(&number, tensor->bytes.data(), sizeof number);
    value.data = number;
    value.kind = "scalar";
  }

  void add(const EventRecord& event, EventValue& value, const std::string& run, std::vector<Row>& rows) {
    make_scalar(value, run);
    if (seen_.size() < kMostNamed) seen_.insert(value.tag);
    if (!tags_.chooses(value.tag)) return;
    ++chosen_;
    if (is_csv_) {
      if (const float* const number = std::get_if<float>(&value.data);
          number != nullptr && value.kind == "scalar")
        rows.push_back({event.step, fmt::format("{},{},{},{},{}\n", csv_field(run), csv_field(value.tag),
                                                event.step, event.wall_time, *number)});
      return;
    }
    Json record = {{"run", run}, {"tag", value.tag}, {"step", event.step}, {"wall_time", event.wall_time}};
    if (value.kind != "scalar") record["kind"] = value.kind;
    if (value.kind != "unknown") std::visit(IntoJson{record}, value.data);
    rows.push_back({event.step, record.dump() + "\n"});
  }

  static constexpr std::size_t kMostNamed = 20;
  const bool is_csv_;
  const EventTags tags_;
  std::int64_t chosen_ = 0;
  std::set<std::string> seen_;
  std::set<std::pair<std::string, std::string>> scalars_;
  std::map<std::string, std::vector<Row>> rows_;
};

}  // namespace

int export_events(const std::string& target, const std::string& format, const std::string& tags,
                  const std::string& output) {
  LOCKSTEP_REQUIRE(format == "csv" || format == "jsonl", ErrorKind::usage,
                   "--export takes csv or jsonl, not '{}'", format);
  std::vector<fs::path> files = {target};
  std::error_code code;
  const bool is_folder = fs::is_directory(target, code);
  if (is_folder) files = find_event_files(target);
  Export result(format == "csv", tags);
  std::vector<std::string> inputs;
  for (const fs::path& file : files) {
    std::string run = is_folder ? file.parent_path().lexically_relative(target).string() : std::string();
    if (run == ".") run.clear();
    result.read(file.string(), run);
    inputs.push_back(file.string());
  }
  result.require_any(target, tags);
  OutputFile file(output, inputs);
  result.write(file);
  file.publish();
  return 0;
}

}  // namespace lockstep
