// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/sweep_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;

Json to_json(const TrialRecord& record) {
  Json results = Json::array();
  for (const RungResult& result : record.results)
    results.push_back({{"step", result.step}, {"value", result.value}, {"digest", result.digest}});
  Json json;
  json["results"] = std::move(results);
  if (!record.error.empty()) json["error"] = record.error;
  return json;
}

TrialRecord record_of(const Json& json) {
  TrialRecord record;
  for (const Json& result : json.at("results"))
    record.results.push_back({result.at("step").get<std::int64_t>(), result.at("value").get<double>(),
                              result.at("digest").get<std::string>()});
  record.error = json.value("error", std::string());
  return record;
}

std::string dumped(const Json& json, int indent = -1) { return json.dump(indent); }

}  // namespace

std::string trial_folder(const std::string& sweep_dir, std::size_t trial) {
  return fmt::format("{}/trials/{:04}", sweep_dir, trial);
}

std::string read_records(const std::string& sweep_dir, std::size_t num_trials) {
  std::map<std::size_t, TrialRecord> records;
  for (std::size_t trial = 0; trial < num_trials; ++trial) {
    const std::string path = trial_folder(sweep_dir, trial) + "/trial.json";
    std::error_code code;
    if (!fs::exists(path, code)) continue;
    const std::string text = read_whole_file(path);
    try {
      records[trial] = record_of(Json::parse(text));
    } catch (const JsonError& error) {
      throw Error(ErrorKind::config, fmt::format("is no record of a trial: {}", error.what()), path,
                  "Remove the folder of the trial: the sweep trains it again.");
    }
  }
  return to_text(records);
}

void write_record(const std::string& sweep_dir, std::size_t trial, const std::vector<KeySetting>& settings,
                  const TrialRecord& record) {
  Json json;
  json["format"] = kFormat;
  json["trial"] = trial;
  for (const KeySetting& setting : settings) json["settings"][setting.key] = setting.value;
  json.update(to_json(record));
  const std::string folder = trial_folder(sweep_dir, trial);
  // A trial that fails at once has no run directory yet.
  make_run_folder(sweep_dir, fs::path(folder).lexically_relative(sweep_dir).string(), ErrorKind::config);
  write_file_atomically(folder + "/trial.json", dumped(json, 2) + "\n");
}

std::string to_text(const std::map<std::size_t, TrialRecord>& records) {
  Json json = Json::object();
  for (const auto& [trial, record] : records) json[std::to_string(trial)] = to_json(record);
  return dumped(json);
}

std::map<std::size_t, TrialRecord> parse_records(const std::string& text) {
  std::map<std::size_t, TrialRecord> records;
  const Json json = Json::parse(text);
  for (const auto& [trial, record] : json.items()) records[std::stoul(trial)] = record_of(record);
  return records;
}

bool claim(const std::string& sweep_dir, std::size_t rung, std::size_t trial) {
  const std::string path = fmt::format("{}/claims/rung-{}.trial-{}", sweep_dir, rung, trial);
  const int descriptor = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor >= 0) {
    ::close(descriptor);
    return true;
  }
  if (errno == EEXIST) return false;
  throw Error(ErrorKind::config, fmt::format("a trial cannot be claimed: {}", std::strerror(errno)), path,
              "All hosts of the sweep must see its folder, and may write into it.");
}

void clear_claims(const std::string& sweep_dir) {
  std::error_code code;
  fs::remove_all(sweep_dir + "/claims", code);
  fs::create_directories(sweep_dir + "/claims", code);
  if (code)
    throw Error(ErrorKind::config, fmt::format("cannot be made: {}", code.message()), sweep_dir + "/claims",
                "Check the permissions of the folder of the sweep.");
}

}  // namespace lockstep
