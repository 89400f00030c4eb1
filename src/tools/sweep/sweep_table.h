// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of a sweep: all trials with settings, results and what became of them. It holds no times, so a
// sweep that was ended and resumed gives the bytes of one that was not.
#pragma once

#include <string>
#include <vector>

#include "tools/sweep/sweep_plan.h"

namespace lockstep {

struct SweepRow {
  std::size_t trial = 0;
  std::vector<std::string> values;  ///< by key; empty: the trial does not set it
  std::string state;                ///< best, finished, stopped, waiting or failed
  std::size_t rungs = 0;            ///< that it has finished
  std::optional<RungResult> last = {};
  std::string error = {};
};

struct SweepTable {
  std::string metric;
  std::vector<std::string> keys;
  std::vector<SweepRow> rows;  ///< in the order of the trials
  std::optional<std::size_t> best = {};
  bool finished = false;
  bool larger_is_better = false;
};

SweepTable sweep_table_of(const SweepPlan& plan, const std::vector<TrialRecord>& records);
/// By how good the trials are: first those that came further; of equal ones the lower number; those without a
/// result at the end.
std::vector<const SweepRow*> ranked(const SweepTable& table);
/// The table for a terminal, in this order.
std::string table_text(const SweepTable& table);
std::string table_csv(const SweepTable& table);
std::string table_json(const SweepPlan& plan, const SweepTable& table,
                       const std::vector<TrialRecord>& records);

}  // namespace lockstep
