// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/step_record.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/scalar.h"
#include "io/json.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFormat = 1;
constexpr const char* kPrefix = "step-";

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::uint64_t from_hex(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (failed != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("'{}' is not a hash", text));
  return value;
}

std::string file_of(const std::string& run_dir, std::int64_t step, const char* extension) {
  return fmt::format("{}/records/{}{:08}{}", run_dir, kPrefix, step, extension);
}

}  // namespace

std::vector<RecordDifference> differences(const StepRecord& recorded, const StepRecord& repeated) {
  const auto same_model = [](const RecordRow& a, const RecordRow& b) {
    return a.stage == b.stage && a.layer == b.layer && a.what == b.what;
  };
  const std::size_t rows = std::min(recorded.rows.size(), repeated.rows.size());
  if (recorded.samples != repeated.samples || rows == 0 ||
      !std::equal(recorded.rows.begin(), recorded.rows.begin() + static_cast<std::ptrdiff_t>(rows),
                  repeated.rows.begin(), same_model))
    throw Error(ErrorKind::config,
                fmt::format("step {} was recorded of another model or another batch", recorded.step), "",
                "Repeat it with the configuration and the version of Lockstep that it was recorded with.");
  std::vector<RecordDifference> found;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::vector<std::uint64_t>&was = recorded.rows[i].hashes, &is = repeated.rows[i].hashes;
    RecordDifference difference{i, {}};
    for (std::size_t place = 0; place < std::max(was.size(), is.size()); ++place)
      if (was[std::min(place, was.size() - 1)] != is[std::min(place, is.size() - 1)])
        difference.places.push_back(static_cast<int>(place));
    if (!difference.places.empty()) found.push_back(std::move(difference));
  }
  return found;
}

std::string row_text(const RecordRow& row) {
  return row.layer.empty() ? fmt::format("{}: {}", row.stage, row.what)
                           : fmt::format("{} of {}: {}", row.stage, row.layer, row.what);
}

std::string to_json(const StepRecord& record) {
  Json environment = Json::object();
  for (const auto& [name, value] : record.environment) environment[name] = value;
  Json json = {{"format", kFormat},           {"step", record.step},       {"loss", record.loss},
               {"accuracy", record.accuracy}, {"updated", record.updated}, {"environment", environment},
               {"hosts", record.hosts},       {"samples", record.samples}};
  Json rows = Json::array();
  for (const RecordRow& row : record.rows) {
    Json hashes = Json::array();
    for (const std::uint64_t hash : row.hashes) hashes.push_back(hex(hash));
    rows.push_back({{"stage", row.stage},
                    {"layer", row.layer},
                    {"what", row.what},
                    {"per_microshard", row.per_microshard},
                    {"hashes", hashes}});
  }
  json["rows"] = std::move(rows);
  return json.dump(1) + "\n";
}

StepRecord record_from_json(std::string_view text, const std::string& where) {
  StepRecord record;
  try {
    const Json json = Json::parse(text);
    if (json.at("format").get<std::int64_t>() != kFormat)
      throw std::invalid_argument("this version of Lockstep does not know its format");
    record.step = json.at("step").get<std::int64_t>();
    // A loss that is not finite is null in JSON.
    record.loss =
        json.at("loss").is_null() ? std::numeric_limits<double>::quiet_NaN() : json.at("loss").get<double>();
    record.accuracy = json.at("accuracy").get<double>();
    record.updated = json.at("updated").get<bool>();
    for (const auto& [name, value] : json.at("environment").items())
      record.environment.emplace_back(name, value.get<std::string>());
    record.hosts = json.at("hosts").get<std::vector<std::string>>();
    record.samples = json.at("samples").get<std::vector<std::int64_t>>();
    for (const Json& item : json.at("rows")) {
      RecordRow row{item.at("stage").string(),
                    item.at("layer").string(),
                    item.at("what").string(),
                    item.at("per_microshard").get<bool>(),
                    {}};
      for (const Json& hash : item.at("hashes")) row.hashes.push_back(from_hex(hash.string()));
      const std::size_t places = row.hashes.size();
      if (row.per_microshard ? places != record.samples.size() : places != 1 && places != record.hosts.size())
        throw std::invalid_argument(fmt::format("'{}' has {} hashes", row_text(row), places));
      record.rows.push_back(std::move(row));
    }
  } catch (const std::exception& error) {
    throw Error(ErrorKind::checkpoint, fmt::format("this is no record of a step: {}", error.what()), where,
                "Record the step again: lockstep train --record N.");
  }
  return record;
}

std::string record_path(const std::string& run_dir, std::int64_t step) {
  return file_of(run_dir, step, ".json");
}
std::string record_state_path(const std::string& run_dir, std::int64_t step) {
  return file_of(run_dir, step, ".h5");
}

std::vector<std::int64_t> recorded_steps(const std::string& run_dir) {
  std::vector<std::int64_t> steps;
  const fs::path folder = fs::path(run_dir) / "records";
  std::error_code failed;
  if (!fs::exists(folder, failed)) return steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json" || !name.starts_with(kPrefix)) continue;
    if (const auto step = parse_integer(name.substr(std::string_view(kPrefix).size())))
      steps.push_back(*step);
  }
  if (failed)
    throw Error(ErrorKind::checkpoint, fmt::format("cannot be read: {}", failed.message()), folder.string());
  std::ranges::sort(steps);
  return steps;
}

}  // namespace lockstep
