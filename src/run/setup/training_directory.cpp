// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/training_directory.h"

#include <filesystem>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "config/yaml_node.h"
#include "core/log.h"
#include "data/opened_sets.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"
#include "run/sections/changed_defaults.h"
#include "run/setup/gpu_description.h"
#include "run/setup/run_changes.h"
#include "run/setup/training_check.h"
#include "session/kept_data.h"
#include "session/run_bad_records.h"
#include "session/run_vocabulary.h"

namespace lockstep {

namespace {

void check_resume(Resume resume, const Config& config, const FoundCheckpoint& found,
                  const std::string& run_dir) {
  if (resume == Resume::never && found.exists())
    throw Error(ErrorKind::config, "the run directory already holds a run, and --resume never was given",
                run_dir,
                "Choose another with --run-dir, remove this one, or continue it with --resume auto.");
  if (resume == Resume::must && !found.exists())
    throw Error(ErrorKind::checkpoint, "there is no checkpoint to continue from, and --resume must was given",
                run_dir, "Check --run-dir, or start the run without --resume must.");
  if (found.exists() && found.header.weights_only)
    throw Error(ErrorKind::checkpoint, "holds weights only: there is no run in it that could be continued",
                found.path,
                "Name another checkpoint in the first line of the state file, or begin a new run with "
                "warm_start.checkpoint.");
  if (found.exists() && found.header.seed != config.general.seed)
    throw config.error(
        "", "seed",
        fmt::format("seed is {}, but the run began with {}", config.general.seed, found.header.seed),
        "The order of the samples depends on it: leave it as it was, or start a new run directory.");
}

/// A run of an earlier program goes on with that program's defaults, where neither configuration says
/// otherwise.
void keep_former_defaults(Config& config, FoundCheckpoint& found, bool is_chief) {
  if (!found.exists() || found.header.config.empty()) return;
  Node kept = parse_yaml(found.header.config, found.path);
  if (state_former_layer_defaults(kept).empty()) return;
  found.header.config = to_yaml(kept);
  for (const std::string& stated : use_former_defaults(config))
    if (is_chief) log_info("{}", stated);
}

}  // namespace

std::unique_ptr<RunLock> take_run_directory(Communicator& world, const std::string& run_dir) {
  std::unique_ptr<RunLock> lock;
  shared([&] {
    agree(
        world,
        [&] {
          if (world.rank() != 0) return;
          check_run_directory(run_dir);
          std::error_code failed;
          std::filesystem::create_directories(run_dir, failed);
          if (failed)
            throw Error(ErrorKind::config,
                        fmt::format("the run directory cannot be made: {}", failed.message()), run_dir,
                        "Choose another with --run-dir.");
          lock = std::make_unique<RunLock>(run_dir);
          CheckpointStore(run_dir, 0).clean();
        },
        "taking the run directory");
  });
  return lock;
}

FoundCheckpoint checkpoint_to_resume(Communicator& world, Resume resume, Config& config,
                                     const std::string& run_dir) {
  return shared([&] {
    FoundCheckpoint found = find_checkpoint(world, run_dir, "");
    check_resume(resume, config, found, run_dir);
    keep_former_defaults(config, found, world.rank() == 0);
    return found;
  });
}

void write_run_description(RunContext& context, const std::string& run_dir, bool resumed, int job) {
  shared([&] {
    agree(
        context.world(),
        [&] {
          if (!context.is_chief()) return;
          if (resumed) check_vocabulary(run_dir, context.train_data());
          const std::string text = resolved_config_text(context.config());
          keep_job_config(run_dir, job, text);
          write_file_atomically(run_dir + "/config.yaml", text);
          keep_gpu_description(run_dir, context.gpu_identity());
          keep_data(run_dir, kept_data(context.train_data(), *context.model().heads));
          if (skips_bad_records(context.config().data))
            keep_bad_records(run_dir, context.train_data(), context.eval_data());
        },
        "writing config.yaml and the vocabulary");
  });
}

}  // namespace lockstep
