// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep evaluate`: exact metrics over the whole evaluation set, as JSON on standard output.
#include "driver/commands/commands.h"

#include "comm/shared_error.h"
#include "driver/commands/evaluation_text.h"
#include "driver/commands/print_result.h"
#include "driver/estimator/estimator.h"
#include "driver/hang_rank.h"
#include "driver/launch.h"
#include "driver/setup/data_trial.h"
#include "driver/setup/run_directory.h"

namespace lockstep {

int run_command(const EvaluateArguments& arguments) {
  RunTarget target = resolve_target(arguments.run);
  try_data_on_chief(target.config);
  const CommOptions limits{hang_timeout_seconds(arguments.hang, target.config.comm.timeout_seconds),
                           target.config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.run.quiet, [&](CommEnvironment& environment) {
    shared([&] { hang_rank(arguments.hang, environment.world()); });
    Estimator estimator(environment, target.config, target.run_dir);
    const EvaluationOutcome outcome = estimator.evaluate(
        {.name = arguments.name, .checkpoint = arguments.run.checkpoint, .averages = arguments.run.averages});
    if (environment.world().rank() == 0) print_result("{}\n", evaluation_text(outcome));
    return 0;
  });
}

}  // namespace lockstep
