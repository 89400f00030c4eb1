// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep watch`: a job that evaluates each new checkpoint of a run that another job trains. It may have
// other numbers of ranks, and other hosts and devices.
#include <cstdlib>

#include "api/launch.h"
#include "core/process_environment.h"
#include "core/run_signals.h"
#include "driver/commands/commands.h"
#include "driver/commands/evaluation_text.h"
#include "io/print_result.h"
#include "run/jobs/checkpoint_watch.h"

namespace lockstep {

int run_command(const WatchArguments& arguments) {
  install_run_signals(process_environment);
  return run_on_ranks({}, arguments.quiet, [&](CommEnvironment& environment) {
    const bool is_chief = environment.world().rank() == 0;
    const WatchOutcome outcome = watch_checkpoints(
        environment,
        {.run_dir = arguments.run_dir,
         .name = arguments.name,
         .averages = arguments.averages,
         .delay_seconds = arguments.delay_seconds,
         .throttle_seconds = arguments.throttle_seconds,
         .most_wait_seconds = arguments.most_wait_seconds,
         .config = [&] { return load_config(arguments.run_dir + "/config.yaml", arguments.overrides); },
         .evaluated =
             [&](const EvaluationOutcome& result) {
               if (is_chief) print_result("{}\n", evaluation_text(result));
               return true;
             }});
    return exit_code(outcome.interruption.kind);
  });
}

}  // namespace lockstep
