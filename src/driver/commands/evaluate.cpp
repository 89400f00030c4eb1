// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep evaluate`: exact metrics of a model, or of an ensemble, over the whole evaluation set, as JSON on
// standard output.
#include "driver/commands/evaluate.h"
#include "core/error.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"

#include "api/estimator.h"
#include "api/launch.h"
#include "comm/shared_error.h"
#include "driver/commands/evaluation_text.h"
#include "driver/commands/hang_rank.h"
#include "io/print_result.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_directory.h"
#include "tools/predict/ensemble_evaluation.h"

namespace lockstep {

namespace {

void declare(CommandOptions& options, EvaluateArguments& arguments) {
  add_ensemble(options, arguments, "RUN_DIR|CONFIG",
               "Run directory, or a configuration file with --run-dir; several are an ensemble, whose "
               "predictions are averaged");
  add_augmentations(options, arguments, "evaluate");
  add_averages(options, arguments.run.averages);
  add_overrides(options, arguments.run.overrides);
  options
      .add("--name", arguments.name,
           "Write the numbers to event files, too, in eval_NAME of the run directory")
      .type_name("NAME");
  add_run_dir(options, arguments.run.run_dir,
              "The run whose checkpoint to use, when a configuration file is given");
  add_hang(options, arguments.hang);
  add_quiet(options, arguments.run.quiet);
}

int run(const EvaluateArguments& arguments) {
  std::vector<MemberTarget> targets =
      member_targets(arguments.run, arguments.more_runs, arguments.more_checkpoints);
  if (targets.size() > 1 && !arguments.name.empty())
    throw Error(ErrorKind::usage, "evaluate: --name belongs to one run, and an ensemble is given", "--name",
                "Leave it out, or evaluate each run.");
  if (arguments.augmentations > 1 && !arguments.name.empty())
    throw Error(ErrorKind::usage, "evaluate: --name does not go with --augmentations", "--name",
                "Leave it out.");
  for (MemberTarget& member : targets) {
    const bool described = describes_samples(member.target.run_dir, member.checkpoint);
    if (described) refuse_without_effect(arguments.run.overrides, false);
    try_data_on_chief(member.target.config, {}, {.train = !described});
  }
  const RunTarget& target = targets.front().target;
  const CommOptions limits{hang_timeout_seconds(arguments.hang, target.config.comm.timeout_seconds),
                           target.config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.run.quiet, [&](CommEnvironment& environment) {
    shared([&] { hang_rank(arguments.hang, environment.world()); });
    const bool averages_predictions = targets.size() > 1 || arguments.augmentations > 1;
    const EvaluationOutcome outcome =
        averages_predictions
            ? evaluate_ensemble(environment, targets, arguments.run.averages, arguments.augmentations)
            : Estimator(environment, target.config, target.run_dir)
                  .evaluate({.name = arguments.name,
                             .checkpoint = targets.front().checkpoint,
                             .averages = arguments.run.averages});
    if (environment.world().rank() == 0) print_as_is(evaluation_text(outcome) + "\n");
    return 0;
  });
}

}  // namespace

extern const Command kEvaluateCommand = {"evaluate",
                                         "Compute exact metrics over the whole evaluation set; prints JSON",
                                         "lockstep evaluate runs/digits\n"
                                         "lockstep evaluate runs/a runs/b runs/c\n"
                                         "lockstep evaluate runs/images --augmentations 8",
                                         call_with<EvaluateArguments, declare, run>};

}  // namespace lockstep
