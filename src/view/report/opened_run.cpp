// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/opened_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "comm/shared_error.h"
#include "core/cpu.h"
#include "run/setup/data_trial.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/opened_data.h"
#include "run/setup/run_directory.h"
#include "session/run_vocabulary.h"

namespace lockstep::report {

namespace {

std::string reason(const Error& error) {
  if (error.where().empty()) return error.what_happened();
  return fmt::format("{}: {}", error.where(), error.what_happened());
}

/// Throws Error.
void make_parts(OpenedRun& run, const std::string& run_dir, const std::string& checkpoint) {
  Config& config = *run.config;
  try_data_on_chief(config);
  if (config.data.failure) throw Error(*config.data.failure);
  run.device.emplace(open_device(config, 0));
  const bool has_eval = config.data.eval.has_value();
  SelfCommunicator self;
  try {
    run.checkpoint = open_checkpoint(self, run_dir, checkpoint);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::bug) throw;
    run.no_values = reason(error);
  }
  const RunNeeds needs{.train = !has_eval,
                       .eval = has_eval,
                       .kept_in = run_dir,
                       .kept = run.checkpoint.header.kept,
                       .described = has_eval};
  const UsedDataset trained = described_training_set(config, needs);
  OpenedData opened = open_data(config, needs.train, needs.eval, trained.get());
  share_bad_records(self, opened, run_dir, available_cores());
  run.data = read_data(config, needs, std::move(opened));
  normalize_sets(self, run.data.train, run.data.eval, run_dir, 1, needs.kept.get());
  run.model = model_for(run.data, config, run.device->device, needs, 0);
  check_vocabulary(run_dir, run.data.first());
}

void restore(OpenedRun& run) {
  if (!run.no_values.empty()) return;
  SelfCommunicator self;
  if (!run.checkpoint.exists()) {
    run.no_values = "The run has no checkpoint.";
    return;
  }
  run.averaged = restore_variables(self, run.checkpoint, *run.model->variables, true);
}

}  // namespace

OpenedRun open_run(const std::string& run_dir, bool with_data, const std::string& checkpoint) {
  OpenedRun run;
  try {
    run.config.emplace(resolve_target(RunArguments{.target = run_dir}).config);
  } catch (const Error& error) {
    run.problem = fmt::format("the configuration cannot be read: {}", reason(error));
    return run;
  }
  if (!with_data) {
    run.problem = "the data were not opened (--mistakes 0)";
    return run;
  }
  try {
    make_parts(run, run_dir, checkpoint);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::bug) throw;
    run.model.reset();
    run.problem = fmt::format("the data of the run cannot be opened here: {}", reason(error));
    return run;
  }
  try {
    restore(run);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::bug) throw;
    run.no_values = reason(error);
  }
  return run;
}

}  // namespace lockstep::report
