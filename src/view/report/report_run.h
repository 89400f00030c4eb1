// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run directory holds, read once, for the sections of a report. Takes no lock: the run may go on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/direction.h"
#include "view/report/curves.h"
#include "view/report/metric_series.h"
#include "view/run/run_overview.h"

namespace lockstep::report {

struct JobConfig {
  int job = 0;  ///< from 1
  std::string path, text;
};

struct ReportRun {
  std::string dir, name;  ///< name: the folder's
  double now = 0;         ///< seconds since 1970
  RunOverview overview;
  MetricRecords records;
  std::string config_path, config_text;  ///< empty: there is none
  std::vector<JobConfig> job_configs;    ///< in order
  std::vector<std::string> class_names;  ///< classes.txt

  std::shared_ptr<const std::vector<MetricSpec>> metrics;  ///< eval.metrics of the configuration; null: none

  /// Which values of a recorded number are better, as the metric declares it.
  Direction direction(std::string_view tag) const;
  const JobRecord& last_job() const { return overview.jobs.back(); }
};

/// Throws Error(config) if the directory is not that of a run.
ReportRun read_report_run(const std::string& dir, double now);

/// Hours in jobs over the steps of a run.
StepClock step_clock(const std::vector<JobRecord>& jobs);

/// Where a series of evaluations was best, and its last value.
struct BestValue {
  double value = 0, last = 0;
  std::int64_t step = 0, last_step = 0;
  bool exists = false;  ///< there is a finite value, and the metric has a direction
};
BestValue best_value(const MetricSeries& series, Direction direction);

}  // namespace lockstep::report
