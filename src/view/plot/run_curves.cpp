// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/plot/run_curves.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "io/event_reader.h"

namespace lockstep {

namespace fs = std::filesystem;

std::string tag_of(const std::string& split, const std::string& name) {
  return split == "eval" ? "eval/" + name : name;
}

RunCurves::RunCurves(std::string run_dir)
    : run_dir_(std::move(run_dir)), reader_(run_dir_ + "/metrics.jsonl") {
  std::error_code code;
  if (!fs::is_directory(run_dir_, code))
    throw Error(ErrorKind::config, "is no run directory", run_dir_,
                "Give the run directory of `lockstep train` (runs/NAME).");
}

bool RunCurves::update() {
  return update([](const MetricRecord&) {});
}

bool RunCurves::update(FunctionRef<void(const MetricRecord&)> record) {
  bool changed = false;
  reader_.read(
      [&] {
        changed = changed || !curves_.empty();
        curves_.clear();
        steps_per_epoch_ = 0;
        last_step_ = last_epoch_ = 0;
      },
      [&](const MetricRecord& one) {
        add(one);
        changed = true;
        record(one);
      });
  return changed;
}

void RunCurves::add(const MetricRecord& record) {
  for (const auto& [name, value] : record.values) {
    RecordedCurve& curve = curves_[tag_of(record.split, name)];
    curve.steps.push_back(record.step);
    curve.values.push_back(value);
  }
  last_step_ = std::max(last_step_, record.step);
  last_epoch_ = std::max(last_epoch_, record.epoch);
  // Epoch e has the steps above (e - 1) * n and up to e * n.
  if (record.epoch > 0)
    steps_per_epoch_ =
        std::max(steps_per_epoch_, static_cast<double>(record.step) / static_cast<double>(record.epoch));
}

RunHours::RunHours(const std::string& run_dir) {
  std::vector<fs::path> files;
  for (const std::string& folder : {run_dir, run_dir + "/eval"}) {
    std::error_code code;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
      if (at->path().filename().string().starts_with("events.out.tfevents")) files.push_back(at->path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    EventReader reader(file.string());
    while (const auto event = reader.next()) {
      if (event->restart) hours_.erase(hours_.lower_bound(event->step), hours_.end());
      if (!event->values.empty()) hours_.insert_or_assign(event->step, event->wall_time / 3600);
    }
  }
  if (hours_.empty())
    throw Error(ErrorKind::data, "holds no event files with times", run_dir,
                "Hours come from event files (summary.events). Use --x step or --x epoch.");
  double first = hours_.begin()->second;
  for (const auto& [step, hours] : hours_) first = std::min(first, hours);
  for (auto& [step, hours] : hours_) hours -= first;
}

double RunHours::at(std::int64_t step) const {
  const auto after = hours_.lower_bound(step);
  if (after == hours_.end()) return hours_.rbegin()->second;
  if (after->first == step || after == hours_.begin()) return after->second;
  const auto before = std::prev(after);
  const double share =
      static_cast<double>(step - before->first) / static_cast<double>(after->first - before->first);
  return before->second + share * (after->second - before->second);
}

}  // namespace lockstep
