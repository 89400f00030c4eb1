// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "config/yaml_node.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "model/metric.h"

namespace lockstep::report {

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) ? read_whole_file(path.string()) : "";
}

std::vector<JobConfig> configs_of_jobs(const fs::path& folder) {
  std::vector<JobConfig> found;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    int number = 0;
    char rest = 0;
    const std::string name = entry.path().filename().string();
    if (std::sscanf(name.c_str(), "job-%d.yam%c", &number, &rest) != 2 || rest != 'l') continue;
    found.push_back({number, entry.path().string(), text_of(entry.path())});
  }
  std::ranges::sort(found, {}, &JobConfig::job);
  return found;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Of a configuration that another version has written, or that names metrics of a program, those of the
/// table are known by their names.
std::shared_ptr<const std::vector<MetricSpec>> metrics_of(const ReportRun& run) {
  try {
    const Node root = parse_yaml(run.config_text, run.config_path);
    const Node* const eval = root.find("eval");
    const Node* const metrics = eval != nullptr ? eval->find("metrics") : nullptr;
    if (metrics == nullptr) return nullptr;
    return std::make_shared<const std::vector<MetricSpec>>(metrics_from_config(*metrics));
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

Direction ReportRun::direction(std::string_view tag) const {
  return direction_of(tag, metrics != nullptr ? std::span(*metrics) : std::span<const MetricSpec>());
}

ReportRun read_report_run(const std::string& dir, double now) {
  std::error_code failed;
  if (!fs::is_directory(dir, failed))
    throw Error(ErrorKind::config, fs::exists(dir, failed) ? "this is no folder" : "there is no such folder",
                dir, "Give the run directory of `lockstep train` (runs/NAME).");
  ReportRun run{.dir = dir,
                .name = {},
                .now = now,
                .overview = run_overview(dir, now),
                .records = {},
                .config_path = {},
                .config_text = {},
                .job_configs = {},
                .class_names = {},
                .metrics = {}};
  const fs::path folder = fs::weakly_canonical(dir, failed);
  run.name = folder.filename().string();
  if (run.name.empty()) run.name = dir;
  run.records = read_metric_records((fs::path(dir) / "metrics.jsonl").string());
  run.config_path = (fs::path(dir) / "config.yaml").string();
  run.config_text = text_of(run.config_path);
  run.job_configs = configs_of_jobs(fs::path(dir) / "configs");
  run.class_names = lines_of(text_of(fs::path(dir) / "classes.txt"));
  run.metrics = metrics_of(run);
  return run;
}

StepClock step_clock(const std::vector<JobRecord>& jobs) {
  StepClock clock;
  double hours = 0;
  const auto add = [&](double step, double at) {
    clock.steps.push_back(step);
    clock.hours.push_back(at);
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobRecord& job = jobs[i];
    const double end = job.ended() ? job.end : std::max(job.heartbeat, job.begin);
    if (job.first_step > 0) {
      const auto first = static_cast<double>(job.begin_step);
      // A job that was killed may not have recorded its last steps; the next one began where it had saved.
      double last = static_cast<double>(job.step), last_time = job.last_step;
      const bool is_last = i + 1 == jobs.size();
      const double counted = is_last ? last : static_cast<double>(jobs[i + 1].begin_step);
      if (last < counted || last_time <= job.first_step) {
        last = std::max(last, counted);
        last_time = end;
      }
      const double share = last > first ? std::clamp((counted - first) / (last - first), 0.0, 1.0) : 0;
      add(first, hours + (job.first_step - job.begin) / 3600);
      if (counted > first)
        add(counted, hours + (job.first_step - job.begin + share * (last_time - job.first_step)) / 3600);
    }
    hours += std::max(0.0, end - job.begin) / 3600;
  }
  return clock;
}

BestValue best_value(const MetricSeries& series, Direction direction) {
  BestValue best;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    const double value = series.values[i];
    best.last = value;
    best.last_step = series.steps[i];
    if (!std::isfinite(value) || direction == Direction::none) continue;
    if (best.exists && !(direction == Direction::min ? value < best.value : value > best.value)) continue;
    best.exists = true;
    best.value = value;
    best.step = series.steps[i];
  }
  return best;
}

}  // namespace lockstep::report
