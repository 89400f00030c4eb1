// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The models whose predictions `lockstep predict` writes and `lockstep evaluate` judges: one, or an ensemble
// whose predictions are averaged.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/prediction_file.h"
#include "model/prediction_kind.h"
#include "run/jobs/prediction_stream.h"
#include "run/setup/run_arguments.h"
#include "run/setup/run_context.h"
#include "run/setup/run_directory.h"
#include "session/run_state.h"

namespace lockstep {

/// A run and one of its checkpoints.
struct MemberTarget {
  RunTarget target;
  std::string checkpoint;  ///< a file, "last" or "best"; empty: the newest intact one
};

/// The members that the arguments name: several runs, or several checkpoints of one run. Before MPI starts.
/// Throws Error(usage) for several of both.
std::vector<MemberTarget> member_targets(const RunArguments& run,
                                         const std::vector<std::string>& more_targets,
                                         const std::vector<std::string>& more_checkpoints);

/// A model with the variables of its checkpoint.
struct Member {
  FoundCheckpoint found;
  std::unique_ptr<RunContext> context;
  bool averaged_variables = false;
};

/// All ranks. Reads the data sets that `needs` names; with `described` the training set has no samples if the
/// checkpoint describes them (RunNeeds). Throws SharedError.
Member open_member(CommEnvironment& environment, const MemberTarget& target, RunNeeds needs, bool averages,
                   bool described = true);

/// Throws Error(config) if the heads differ in number, name, shape or kind.
void check_same_heads(const std::vector<Member>& members, const std::vector<MemberTarget>& targets);

/// The mean over members of what a head says about some samples, in the order of the members, in double.
/// `rows`: one span for each member. Probabilities of labels are averaged, too: a logit becomes that of the
/// mean probability.
void average_rows(PredictionKind kind, std::span<const std::span<const float>> rows, std::vector<float>& out);
/// The standard deviation over members (divided by their number less 1), of the same numbers; of labels, that
/// of the probabilities. Needs two members or more.
void spread_of_rows(PredictionKind kind, std::span<const std::span<const float>> rows,
                    std::vector<float>& out);

}  // namespace lockstep
