// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/gradient_reducer.h"
#include "optim/average_rule.h"
#include "optim/clip_rule.h"
#include "optim/gating.h"
#include "optim/regularizer.h"
#include "train/server_options.h"

namespace lockstep {

class RunSchedules;

/// What a Trainer needs to be told in addition to its optimizer.
struct TrainerOptions {
  /// With an ownership (share_update()) ranks share the update, and the optimizer holds held_parts().
  GradientReducerOptions reducer;
  std::vector<RegularizationRule> regularization;
  ClipRule clip;
  bool scales_loss = false;           ///< set_loss_scale() will be called
  RunSchedules* schedules = nullptr;  ///< null: only those of the optimizer; outlives the trainer
  std::optional<AverageRule> average = {};
  std::int64_t bucket_first_bytes = std::int64_t{1} << 20, bucket_bytes = std::int64_t{25} << 20;
  Gating gating = Gating::graph;
  std::optional<int> branches = {};  ///< GpuOptions::branches
  /// Servers hold the variables; the reducer's ownership is theirs. compute() then runs the steps up to the
  /// next meeting of all ranks, and updates after all but the last.
  std::optional<ServerTrainingOptions> servers = {};
};

}  // namespace lockstep
