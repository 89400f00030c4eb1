// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `summary` of a configuration: what is recorded during training, and how often.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/params.h"
#include "session/summaries/summary_part.h"

namespace lockstep {

struct SummaryOptions {
  std::int64_t every_steps = 10;
  std::optional<double> every_seconds = {};
  std::int64_t counter_every_steps = 100;
  bool events = true;   ///< event files for TensorBoard
  bool metrics = true;  ///< metrics.jsonl
  double flush_seconds = 5, timeout_seconds = 60;
  bool graph = true, hparams = true, configuration = true;  ///< for TensorBoard, in each job's event file
  bool projector = false;                                   ///< tables of embedding layers, at the end
  std::vector<SummarySpec> parts = {};                      ///< those that are switched on
};

/// Options of the section `summary`.
std::span<const ParamSpec> summary_table();
/// `section` is checked against summary_table().
SummaryOptions summary_options(const Params& section);

}  // namespace lockstep
