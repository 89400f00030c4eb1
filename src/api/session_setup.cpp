// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/session_setup.h"
#include "core/process_environment.h"
#include "run/setup/gpu_description.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "comm/shared_error.h"
#include "core/run_signals.h"
#include "run/setup/train_hooks.h"
#include "run/setup/training_directory.h"
#include "session/kept_data.h"

namespace lockstep {

SessionSetup::SessionSetup(CommEnvironment& environment, Config config, std::string run_dir)
    : signals_(process_environment), run_dir_(std::move(run_dir)) {
  lock_ = take_run_directory(environment.world(), run_dir_);
  found_ = checkpoint_to_resume(environment.world(), Resume::automatic, config, run_dir_);
  const bool resumed = found_.exists();
  context_ = std::make_unique<RunContext>(environment, std::move(config),
                                          resumed ? std::optional(found_.header.shards) : std::nullopt,
                                          RunNeeds{.train = true,
                                                   .updates = true,
                                                   .ranks = environment.world().size(),
                                                   .kept_in = resumed ? run_dir_ : std::string(),
                                                   .kept = found_.header.kept,
                                                   .index_in = run_dir_});
  setup_ = make_trainer(*context_, {}, run_dir_);
  distributed_ = setup_->distributed_state(*context_);
  write_run_description(*context_, run_dir_, resumed, 1);
}

SessionValues SessionSetup::values() {
  return {.control = context_->control(),
          .trainer = *setup_->trainer,
          .variables = *context_->model().variables,
          .optimizer = *setup_->optimizer,
          .distributed = distributed_.get(),
          .seed = context_->seed()};
}

SessionManagerOptions SessionSetup::session() {
  return {.run_dir = run_dir_, .warm_start = context_->config().warm_start};
}

SupervisedRun SessionSetup::supervised() {
  const Config& config = context_->config();
  if (!recorder_)
    recorder_ = std::make_unique<JobRecorder>(context_->world(),
                                              JobSpec{run_dir_, hash_of_config(resolved_config_text(config)),
                                                      config.train.max_jobs_without_progress},
                                              found_);
  return {
      .values = values(),
      .shards = context_->shards(),
      .accuracy = context_->model().accuracy(),
      .part_accuracy = context_->model().report_accuracy,
      .lock = lock_.get(),
      .config_text = resolved_config_text(context_->config()),
      .computed_on = gpu_lines(context_->gpu_identity()),
      .kept = std::make_shared<const KeptFiles>(kept_data(context_->train_data(), *context_->model().heads)),
      .copy_ways = copy_ways(),
      .sync_seconds = sync_seconds(context_->config()),
      .recorder = recorder_.get()};
}

SessionParts SessionSetup::parts(RunReports& reports) {
  return {.control = context_->control(),
          .trainer = *setup_->trainer,
          .variables = *context_->model().variables,
          .optimizer = *setup_->optimizer,
          .reports = reports,
          .shards = context_->shards(),
          .seed = context_->seed(),
          .accuracy = context_->model().accuracy(),
          .part_accuracy = context_->model().report_accuracy};
}

CheckpointCopyWays SessionSetup::copy_ways() {
  const ExecutorContext executor = context_->executor_context();
  return {.pool = &context_->workers().pool(),
          .device = &executor.device,
          .stream = executor.lanes.front().stream};
}

}  // namespace lockstep
