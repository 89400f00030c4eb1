// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_record.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lockstep {

namespace {

constexpr int kFormat = 1;

/// One list of members for writing and reading.
template <typename Record, typename Visit>
void visit(Record& r, Visit&& member) {
  member("state", r.state);
  member("reason", r.reason);
  member("phase", r.phase);
  member("host", r.host);
  member("pid", r.pid);
  member("pid_namespace", r.pid_namespace);
  member("process_start", r.process_start);
  member("queue_job", r.queue_job);
  member("ranks", r.ranks);
  member("total_steps", r.total_steps);
  member("begin_step", r.begin_step);
  member("step", r.step);
  member("loss", r.loss);
  member("begin", r.begin);
  member("first_step", r.first_step);
  member("last_step", r.last_step);
  member("heartbeat", r.heartbeat);
  member("end", r.end);
  member("saving_seconds", r.saving_seconds);
  member("exit_code", r.exit_code);
  member("config_hash", r.config_hash);
  member("training_data", r.data.train);
  member("evaluation_data", r.data.eval);
}

}  // namespace

std::string to_json(const JobRecord& record) {
  Json json;
  json["format"] = kFormat;
  visit(record, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump();
}

std::optional<JobRecord> job_record(std::string_view text) {
  const Json json = Json::parse_or_null(text);
  if (json["format"] != kFormat) return std::nullopt;
  JobRecord record;
  bool fits = true;
  visit(record, [&](const char* name, auto& value) {
    if (json[name].is_null()) return;  // a number that was not finite
    const bool is_text = std::is_same_v<std::remove_reference_t<decltype(value)>, std::string>;
    if (is_text ? json[name].is_string() : json[name].is_number())
      value = json[name].template get<std::remove_reference_t<decltype(value)>>();
    else
      fits = false;
  });
  return fits ? std::optional(record) : std::nullopt;
}

std::vector<JobRecord> read_jobs(const std::string& run_dir) {
  namespace fs = std::filesystem;
  std::vector<JobRecord> jobs;
  const std::string before = run_dir + "/jobs.jsonl";
  if (std::error_code code; fs::exists(before, code)) {
    std::istringstream lines(read_whole_file(before));
    for (std::string line; std::getline(lines, line);)
      if (auto record = job_record(line)) jobs.push_back(std::move(*record));
  }
  const std::string path = run_dir + "/status.json";
  if (std::error_code code; !fs::exists(path, code)) return jobs;
  if (auto last = job_record(read_whole_file(path)); last) {
    // A start may have been killed after it moved the record to jobs.jsonl and before it wrote status.json.
    if (jobs.empty() || jobs.back().begin != last->begin) jobs.push_back(std::move(*last));
    return jobs;
  }
  throw Error(ErrorKind::config, "this version does not know this format of a status file", path,
              "Only `lockstep status` reads it; the run does not need it. Remove it if it is damaged.");
}

int jobs_without_gain(const std::vector<JobRecord>& jobs, std::int64_t step) {
  int count = 0;
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    if (job->state == "stopped" || job->state == "failed") continue;
    if (job->begin_step < step) break;
    ++count;
    step = job->begin_step;
  }
  return count;
}

DataChange data_change(const std::vector<JobRecord>& before, std::int64_t step, const JobData& mine) {
  const JobRecord *last = nullptr, *computed = nullptr;  // the one that the checkpoint is of
  for (const JobRecord& job : before) {
    if (job.data.train.empty()) continue;
    last = &job;
    if (job.begin_step < step) computed = &job;
  }
  if (last == nullptr) return {.unknown = true};
  if (last->data == mine || (computed != nullptr && computed->data == mine)) return {};
  return {.train = last->data.train != mine.train, .eval = last->data.eval != mine.eval};
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::int64_t process_start_ticks(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text) || text.rfind(')') == std::string::npos) return 0;
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  const std::vector<std::string> values{std::istream_iterator<std::string>(fields), {}};
  constexpr std::size_t kState = 0, kStart = 19;  // proc(5): fields 3 and 22
  if (values.size() <= kStart || values[kState] == "Z" || values[kState] == "X") return 0;
  return std::stoll(values[kStart]);
}

std::string pid_namespace() {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace lockstep
