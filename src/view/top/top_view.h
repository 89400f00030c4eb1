// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The picture of `lockstep top`, from what the files of a run say. Reads no file and no clock.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/rank_status.h"
#include "session/run_progress.h"
#include "view/terminal/text_style.h"

namespace lockstep {

struct TopState {
  std::string run_dir;
  std::string state;            ///< "running: step 480"
  std::vector<JobRecord> jobs;  ///< not empty
  RunProgress progress;
  double now = 0;
  std::optional<RanksReport> ranks;  ///< of the last job
  std::int64_t epoch = 0;            ///< of the last record; 0: unknown
  std::optional<double> loss;
  std::vector<double> speeds;  ///< samples/s of the last records of training
  std::int64_t evaluated_step = 0;
  std::vector<std::pair<std::string, double>> evaluation;  ///< the last one
};

/// Lines that fit into the style's width; into its height too if `fitted`: then the slowest ranks and a line
/// about the others.
std::vector<std::string> top_lines(const TopState& state, const TextStyle& style, bool fitted);

}  // namespace lockstep
