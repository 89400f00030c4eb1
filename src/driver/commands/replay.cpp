// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/replay.h"

#include <fmt/format.h>

#include <filesystem>

#include "api/launch.h"
#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "core/log.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "driver/commands/hang_rank.h"
#include "io/atomic_file.h"
#include "io/print_result.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_context.h"
#include "run/setup/train_setup.h"
#include "session/distributed_state.h"
#include "session/hooks/schedule_hook.h"
#include "session/step_recorder.h"
#include "train/step_sums.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

std::string known_steps(const std::string& run_dir) {
  const std::vector<std::int64_t> steps = recorded_steps(run_dir);
  if (steps.empty()) return "No step of this run was: lockstep train --record N records step N.";
  return fmt::format("Recorded: {}.", fmt::join(steps, ", "));
}

/// The chief reads, all get it. All ranks.
StepRecord read_record(Communicator& world, const std::string& run_dir, std::int64_t step) {
  const std::string path = record_path(run_dir, step);
  std::string text;
  agree(
      world,
      [&] {
        if (world.rank() == 0) text = read_whole_file(path, ErrorKind::checkpoint);
      },
      "reading the record");
  std::uint64_t size = text.size();
  world.broadcast(&size, sizeof size, 0, "the record");
  text.resize(size);
  world.broadcast(text.data(), size, 0, "the record");
  StepRecord record = record_from_json(text, path);
  if (record.step != step)
    throw Error(ErrorKind::checkpoint, fmt::format("this is the record of step {}", record.step), path);
  return record;
}

/// The step again, from the state before it. All ranks.
StepRecord repeat(RunContext& context, const FoundCheckpoint& state, const StepRecord& recorded) {
  const TrainerSetup setup(context, shared([&] {
                             return plan_replay(context.config(), context.model(), context.train_set(),
                                                context.take_optimizer(), context.shards(), &state.header);
                           }));
  Trainer& trainer = *setup.trainer;
  const std::unique_ptr<DistributedState> distributed = setup.distributed_state(context);
  shared([&] {
    restore_state(context.world(), state, *context.model().variables,
                  {.optimizer = setup.optimizer.get(),
                   .hooks = ScheduleHook(*setup.schedules).tensors(),
                   .distributed = distributed.get()});
  });
  trainer.set_position(state.header.global_step, {state.header.epoch, state.header.samples_consumed});

  StepRecorder recorder(context.executor_context(), trainer.executor().calls());
  trainer.add_observer(recorder);
  const StepResult result = trainer.compute();
  recorder.summed(trainer.sums().gradients(), trainer.sums().sparse());
  trainer.apply(recorded.updated);
  StepRecord repeated = recorder.gather(context.control(), true);
  repeated.step = result.step;
  repeated.loss = result.loss;
  repeated.accuracy = result.accuracy;
  repeated.environment = context.environment();
  return repeated;
}

void declare(CommandOptions& options, ReplayArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory");
  options.add("--step", arguments.step, "The step: one that was given to lockstep train --record")
      .required()
      .type_name("N")
      .check(whole_number(1, kMostSteps));
  add_json(options, arguments.json, "Print JSON: all rows that differ");
  add_overrides(options, arguments.overrides);
  add_hang(options, arguments.hang);
  add_quiet(options, arguments.quiet);
}

int run(const ReplayArguments& arguments) {
  const std::string state_path = record_state_path(arguments.run_dir, arguments.step);
  std::error_code code;
  if (!std::filesystem::exists(state_path, code))
    throw Error(ErrorKind::usage, fmt::format("step {} was not recorded", arguments.step), arguments.run_dir,
                known_steps(arguments.run_dir));
  if (!std::filesystem::exists(record_path(arguments.run_dir, arguments.step), code))
    throw Error(ErrorKind::usage,
                fmt::format("step {} was begun, but the run ended before there was anything to compare with",
                            arguments.step),
                arguments.run_dir,
                fmt::format("{} is the state before it. {}", state_path, known_steps(arguments.run_dir)));
  Config config =
      config_from_text(CheckpointFile(state_path).header().config, state_path, arguments.overrides);
  try_data_on_chief(config);
  const CommOptions limits{hang_timeout_seconds(arguments.hang, config.comm.timeout_seconds),
                           config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    shared([&] { hang_rank(arguments.hang, world); });
    const StepRecord recorded = shared([&] { return read_record(world, arguments.run_dir, arguments.step); });
    const FoundCheckpoint state =
        shared([&] { return find_checkpoint(world, arguments.run_dir, state_path); });
    RunContext context(environment, config, state.header.shards,
                       {.train = true, .updates = true, .kept_in = arguments.run_dir});
    const StepRecord repeated = repeat(context, state, recorded);
    return shared([&] {
      const bool equal = differences(recorded, repeated).empty();
      if (context.is_chief()) {
        const std::string report = replay_report(recorded, repeated, arguments.json);
        arguments.json ? print_as_is(report) : print_lines(report);
      }
      return equal ? 0 : 1;
    });
  });
}

}  // namespace

extern const Command kReplayCommand = {"replay",
                                       "Repeat a recorded step, on any number of ranks, and compare it layer "
                                       "by layer; exit code 1 if it differs",
                                       "lockstep replay runs/digits --step 100",
                                       call_with<ReplayArguments, declare, run>};

}  // namespace lockstep
