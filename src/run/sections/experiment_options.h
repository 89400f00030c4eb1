// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `experiment` of a configuration: which method of an Experiment (experiment.h) `lockstep
// experiment` calls, and with what.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/params.h"
#include "config/table.h"
#include "model/direction.h"

namespace lockstep {

/// Which evaluated checkpoints of a run are kept as exports (run/jobs/export_strategy.h).
struct ExportStrategy {
  /// latest: each evaluated checkpoint. best: one that is better than all before it. final: that of the end.
  enum class When { latest, best, final };
  When when = When::latest;
  std::string name = "latest";                ///< of the folder
  int keep = 5;                               ///< number of the newest; 0: all
  std::string metric = "loss";                ///< best: a number of the evaluation
  std::optional<bool> larger_is_better = {};  ///< none: as the metric says

  Direction given_direction() const {
    return !larger_is_better ? Direction::none : *larger_is_better ? Direction::max : Direction::min;
  }
};

/// Whether a folder may have this name: letters, digits, - and _.
bool is_export_name(std::string_view name);

struct ExperimentOptions {
  std::string schedule;  ///< a method of Experiment
  std::int64_t min_eval_frequency = 1;
  std::optional<std::int64_t> train_steps_per_iteration = {};
  bool delay_workers_by_global_step = false;
  double eval_delay_seconds = 0, throttle_seconds = 0, max_wait_seconds = 0;
  std::vector<ExportStrategy> exports = {};
};

/// One of the things that an item of `exports` may be.
struct ExportEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  ExportStrategy::When when;
};
Table<ExportEntry>& export_table();

/// The methods, as `schedule` names them.
std::span<const std::string_view> experiment_schedules();
/// Options of the section.
std::span<const ParamSpec> experiment_table();
/// `section` is checked against experiment_table(). Throws Error(config).
ExperimentOptions experiment_options(const Params& section);

}  // namespace lockstep
