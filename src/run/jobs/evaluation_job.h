// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Exact evaluations of a run's checkpoints over the whole evaluation set, apart from training. `lockstep
// evaluate`, `lockstep watch` and Estimator::evaluate() are these functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/environment.h"
#include "run/jobs/outcomes.h"
#include "run/jobs/pass_hook.h"
#include "run/sections/config.h"
#include "session/run_state.h"

namespace lockstep {

class Evaluation;
class EventWriter;
class MetricsLog;
class RunContext;

/// The data and the model of a run, for evaluations of one checkpoint after the other.
class EvaluationRun {
 public:
  /// `first`: one of the checkpoints, which says how a batch is cut. All ranks. Throws SharedError.
  EvaluationRun(CommEnvironment& environment, const Config& config, const std::string& run_dir,
                const FoundCheckpoint& first);
  ~EvaluationRun();

  Evaluation& evaluation() { return *evaluation_; }
  RunContext& context() { return *context_; }
  /// `averages`: with the moving averages of the variables, where the checkpoint has them. All ranks; the
  /// same result on all. Throws SharedError.
  EvaluationOutcome run(const FoundCheckpoint& checkpoint, bool averages,
                        const std::vector<PassHookFunction>& hooks = {});

 private:
  std::unique_ptr<RunContext> context_;
  std::unique_ptr<Evaluation> evaluation_;
};

/// The numbers of evaluations, in event files and in metrics.jsonl in the folder eval_NAME of the run
/// directory. Failures of the disk are warnings.
class EvaluationFiles {
 public:
  /// Throws Error(usage) for a name that a folder should not have.
  static void check_name(const std::string& name);
  /// The files of a name that was checked.
  EvaluationFiles(const std::string& run_dir, const std::string& name);
  ~EvaluationFiles();
  void record(const EvaluationOutcome& outcome);

 private:
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<MetricsLog> metrics_;
};

struct EvaluationJob {
  std::string run_dir;
  std::string checkpoint = {};  ///< empty: the newest intact one of the run
  bool averages = true;
  std::string name = {};  ///< not empty: of EvaluationFiles
  std::vector<PassHookFunction> hooks = {};
};

/// All ranks; the same result on all. Throws SharedError, also if there is no checkpoint.
EvaluationOutcome run_evaluation_job(CommEnvironment& environment, const Config& config,
                                     const EvaluationJob& job);

}  // namespace lockstep
