// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/training_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"
#include "model/direction.h"
#include "optim/moving_average.h"
#include "run/sections/experiment_options.h"
#include "run/sections/sweep_options.h"
#include "run/setup/train_setup.h"
#include "session/hooks/early_stopping_hook.h"
#include "session/kept_data.h"
#include "session/run_state.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// Throws the hook's error with its name and its position.
void check_hook(const Config& config, const HookSpec& hook, const RunNames& names) {
  try {
    const std::unique_ptr<Hook> made = hook.make(config.hook_setting());
    made->check(names);
    check_direction(*made, config.eval.metrics);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("hook {}: {}", hook.name, error.what_happened()),
                error.where().empty() ? hook.where : error.where(), error.advice());
  }
}

/// Also where keep_best is 0: a wrong name waits there for the day on which it is used.
void check_best(const Config& config, const RunNames& names) {
  const bool used = config.checkpoint.saver.retention.keep_best > 0;
  const std::string& metric = config.checkpoint.best_metric;
  if (names.evaluation.empty()) {
    if (!used) return;
    throw config.error("checkpoint", "keep_best", "there is no evaluation to compare checkpoints by",
                       "Add an evaluation set to section data, or leave keep_best at 0.");
  }
  if (!names.evaluates(metric))
    throw config.error("checkpoint", "best_metric", fmt::format("no evaluation gives '{}'", metric),
                       names.advice_for(metric));
  const Direction given = config.checkpoint.best_mode, of_metric = direction_of(metric, config.eval.metrics);
  if (!used && given == Direction::none) return;
  resolve(
      {.given = given,
       .metric = metric,
       .option = "checkpoint.best_mode",
       .where = config.section("checkpoint").where(given == Direction::none ? "best_metric" : "best_mode")},
      of_metric);
}

void check_exports(const Config& config, const RunNames& names) {
  if (names.evaluation.empty()) return;
  for (const ExportStrategy& strategy : experiment_options(config.section("experiment")).exports) {
    if (strategy.when != ExportStrategy::When::best) continue;
    const std::string &metric = strategy.metric, where = config.section("experiment").where("exports");
    if (!names.evaluates(metric))
      throw Error(ErrorKind::config,
                  fmt::format("export {}: no evaluation gives '{}'", strategy.name, metric), where,
                  names.advice_for(metric));
    resolve({.given = strategy.given_direction(),
             .metric = metric,
             .option = "the mode of the export",
             .where = where},
            direction_of(metric, config.eval.metrics));
  }
}

void check_sweep(const Config& config, const RunNames& names) {
  if (names.evaluation.empty() || !config.section("").has("sweep")) return;
  const Params& section = config.section("sweep");
  const SweepOptions options = sweep_options(section);
  if (!names.evaluates(options.metric))
    throw config.error("sweep", "metric", fmt::format("no evaluation gives '{}'", options.metric),
                       names.advice_for(options.metric));
  resolve({.given = options.mode,
           .metric = options.metric,
           .option = "sweep.mode",
           .where = section.where(options.mode == Direction::none ? "metric" : "mode")},
          direction_of(options.metric, config.eval.metrics));
}

}  // namespace

void check_direction(const Hook& hook, std::span<const MetricSpec> metrics) {
  if (const auto* const early = dynamic_cast<const StopWithoutProgressHook*>(&hook))
    early->require_direction(direction_of(early->metric(), metrics));
}

void check_names(const Config& config, const RunNames& names) {
  check_best(config, names);
  check_exports(config, names);
  check_sweep(config, names);
  for (const SummarySpec& part : config.summary.parts) part.make()->check(names);
  for (const HookSpec& hook : config.hooks) check_hook(config, hook, names);
}

void check_noise_scale(const Config& config, const VariableStore& variables, std::int64_t shards) {
  if (!config.gradients.noise_scale) return;
  if (shards < 2)
    throw config.error("gradients", "noise_scale",
                       "a batch is one microshard, and there is nothing to compare it with",
                       "Set shards, or train.accumulate, to 2 or more.");
  if (config.optimizer.shard)
    throw config.error("gradients", "noise_scale", "optimizer.shard leaves no rank the whole gradient",
                       "Leave out one of them.");
  if (!variables.sparse().empty())
    throw config.error(
        "gradients", "noise_scale",
        fmt::format("the gradient of {} is sparse, and the norms of its microshards are not measured",
                    variables[variables.sparse().front()].name),
        "Make it dense (comm.sparse_below: 0, and no lazy optimizer), or leave out the noise scale.");
}

void check_schedules(const Config& config, const RunSchedules& schedules, const RunNames& names) {
  for (const ScheduledNumber* number : schedules.numbers()) {
    MetricFollower* const follower = number->follower();
    if (follower == nullptr) continue;
    const std::string option = fmt::format("{}: schedule {}", number->option(), number->schedule());
    if (!names.evaluates(follower->metric()))
      throw Error(ErrorKind::config,
                  names.evaluation.empty()
                      ? fmt::format("{} needs evaluations, and there are none", option)
                      : fmt::format("{}: no evaluation gives the metric '{}'", option, follower->metric()),
                  number->where(), names.advice_for(follower->metric()));
    if (config.eval.every_epochs == 0 && config.eval.every_steps == 0)
      throw Error(ErrorKind::config,
                  fmt::format("{} needs evaluations, and there is one at the end only", option),
                  number->where(), "Set eval.every_epochs or eval.every_steps.");
    if (auto* const comparer = dynamic_cast<MetricComparer*>(follower))
      comparer->set_direction(resolve({.given = comparer->given_direction(),
                                       .metric = follower->metric(),
                                       .option = "mode",
                                       .where = number->where()},
                                      direction_of(follower->metric(), config.eval.metrics)));
  }
}

void check_shard(const Config& config, const Optimizer& optimizer, bool on_gpu, bool records) {
  if (!config.optimizer.shard) return;
  constexpr const char* kWithout = "Set optimizer.shard=false: the results are the same.";
  const Params& section = config.optimizer.section;
  if (on_gpu)
    throw section.error("shard", "variables and slots on a GPU are not distributed over ranks", kWithout);
  if (config.comm.fast_reduction)
    throw section.error("shard", "the sum of comm.reduction: fast has no parts",
                        "Set comm.reduction=tree, or optimizer.shard=false.");
  if (!optimizer.updates_parts())
    throw section.error("shard", fmt::format("{} needs whole variables on each rank", optimizer.subject()),
                        "Remove shard, or use a rule that updates each element alone (docs/sharding.md).");
  if (records)
    throw section.error("shard", "a step cannot be recorded where each rank has a part of the gradients",
                        kWithout);
}

namespace {

void check_error_feedback(const Config& config, const VariableStore& variables, bool on_gpu) {
  constexpr const char* kOption = "error_feedback";
  if (!config.comm.error_feedback) return;
  if (!config.comm.compress)
    throw config.error("comm", kOption, "gradients are not rounded: there is no error to give back",
                       "Set comm.compress=bfloat16 as well, or remove error_feedback.");
  if (on_gpu)
    throw config.error("comm", kOption, "errors are given back on CPUs, and this run uses a GPU",
                       "Set comm.error_feedback=false; comm.compress goes on.");
  if (config.precision.loss_scale.used())
    throw config.error("comm", kOption,
                       "gradients carry a loss scale, and an error of one step would not fit the next",
                       "Set precision.compute=bfloat16, which needs no loss scale, or "
                       "comm.error_feedback=false.");
  if (!variables.sparse().empty())
    throw config.error(
        "comm", kOption,
        fmt::format("the gradient of {} is sparse: a step has no error to give back of the rows that it "
                    "does not touch",
                    variables[variables.sparse().front()].name),
        "Make it dense (comm.sparse_below: 0, and no lazy optimizer), or set comm.error_feedback=false.");
}

}  // namespace

void check_compress(const Config& config, const VariableStore& variables, bool on_gpu) {
  check_error_feedback(config, variables, on_gpu);
  if (!config.comm.compress) return;
  if (config.comm.fast_reduction)
    throw config.error("comm", "compress",
                       "nodes of the tree are rounded, and comm.reduction: fast does not sum along the tree",
                       "Set comm.reduction=tree, or comm.compress=none.");
  if (on_gpu && !variables.sparse().empty())
    throw config.error(
        "comm", "compress",
        fmt::format("the gradient of {} is sparse, and rows on a GPU are not rounded",
                    variables[variables.sparse().front()].name),
        "Make it dense (comm.sparse_below: 0, and no lazy optimizer), or set comm.compress=none.");
}

void check_run_directory(const std::string& run_dir) {
  const std::string folder = existing_folder(run_dir);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw Error(ErrorKind::config, fmt::format("the run directory cannot be made: {} is no folder", folder),
                run_dir, "Choose another with --run-dir.");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(
        ErrorKind::config,
        fmt::format("the run directory cannot be made or written: {}: {}", folder, std::strerror(errno)),
        run_dir, "Choose another with --run-dir.");
}

void check_room(const Config& config, const std::string& run_dir, const Dataset& train,
                const VariableStore& variables, const Optimizer& optimizer, std::size_t more_bytes) {
  CheckpointHeader header = run_header(0, {}, 1, config.general.seed, resolved_config_text(config));
  header.kept = std::make_shared<const KeptFiles>(kept_data(train));
  std::vector<CheckpointTensor> tensors = state_tensors(variables, &optimizer);
  if (config.average)
    for (std::size_t i = 0; i < variables.variables().size(); ++i) {
      const auto id = static_cast<VariableId>(i);
      if (has_average(config.average->rule, variables[id]))
        tensors.push_back({average_path(variables[id].name), variables.tensor(id)});  // of its size
    }
  CheckpointStore(run_dir, config.checkpoint.saver.retention)
      .require_room(checkpoint_file_bytes(header, tensors) + more_bytes);
}

}  // namespace lockstep
