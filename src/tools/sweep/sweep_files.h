// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The folder of a sweep. On-disk names: do not change.
//
//   sweep.yaml            the configuration with its section sweep, complete
//   sweep.json, sweep.csv the table: all trials with settings and results; written after each rung
//   best.yaml             the configuration of the best trial
//   report.html           the picture of the sweep
//   trials/0007/          the run directory of trial 7, and in it
//     trial.json          what the trial has given; written after each of its rungs. A sweep resumes from
//     these
//   claims/               which group trains which trial in the present rung; emptied by each job
//   STOP                  made by a person, or by the first group that is interrupted: all groups stop
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/sweep/trials.h"

namespace lockstep {

std::string trial_folder(const std::string& sweep_dir, std::size_t trial);
/// The trials that have begun, by number, as text for parse_records().
std::string read_records(const std::string& sweep_dir, std::size_t num_trials);
/// Replaces the record of a trial atomically.
void write_record(const std::string& sweep_dir, std::size_t trial, const std::vector<KeySetting>& settings,
                  const TrialRecord& record);

/// Records by trial as one text, for an exchange, and back.
std::string to_text(const std::map<std::size_t, TrialRecord>& records);
std::map<std::size_t, TrialRecord> parse_records(const std::string& text);

/// Takes a trial for this group: false if another group has it. One process of each group.
bool claim(const std::string& sweep_dir, std::size_t rung, std::size_t trial);
/// Removes all claims; called before any group claims.
void clear_claims(const std::string& sweep_dir);

}  // namespace lockstep
