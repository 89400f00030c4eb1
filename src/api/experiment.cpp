// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <utility>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "config/params.h"
#include "core/error.h"
#include "core/process_environment.h"
#include "core/run_file.h"
#include "core/run_signals.h"
#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "io/metrics_reader.h"
#include "run/jobs/checkpoint_watch.h"
#include "run/jobs/export_strategy.h"
#include "session/hook_context.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/run_state.h"

namespace lockstep {

namespace {

/// Of TensorFlow's Experiment.
constexpr double kWorkerDelaySteps = 8000;

/// A file that names the newest exported checkpoint of evaluations during training. On-disk name: do not
/// change.
std::string export_mark(const std::string& run_dir) { return run_dir + "/export/exported"; }

std::string name_of_checkpoint(const CheckpointHeader& header) {
  return fmt::format("{} {}\n", header.global_step, header.digest);
}

/// On the chief.
void mark_exported(const std::string& run_dir, const std::string& checkpoint) {
  make_run_folder(run_dir, "export", ErrorKind::output);
  write_file_atomically(export_mark(run_dir), name_of_checkpoint(CheckpointFile(checkpoint).header()));
}

/// On the chief: whether an earlier job has evaluated a checkpoint, and died before its exports.
bool lacks_exports(const std::string& run_dir, const FoundCheckpoint& found) {
  if (!found.exists()) return false;
  if (std::error_code failed;
      std::filesystem::exists(export_mark(run_dir), failed) &&
      read_whole_file(export_mark(run_dir), ErrorKind::output) == name_of_checkpoint(found.header))
    return false;
  bool evaluated = false;
  MetricsReader(run_dir + "/metrics.jsonl")
      .read([&] { evaluated = false; },
            [&](const MetricRecord& record) {
              evaluated = evaluated || (record.split == "eval" && record.step == found.header.global_step);
            });
  return evaluated;
}

/// Exports what evaluations during training have found, on the chief, when the checkpoint of the same step is
/// durable.
class ExportListener final : public CheckpointSaverListener {
 public:
  ExportListener(std::string run_dir, std::vector<ExportStrategy> strategies,
                 std::optional<EvaluationOutcome>& last)
      : run_dir_(std::move(run_dir)), strategies_(std::move(strategies)), last_(last) {}

  void before_save(HookContext& context, std::int64_t step) override {
    EvaluationOutcome found{.global_step = step};
    const MetricBoard& board = context.eval_metrics();
    for (const std::string& name : board.names()) {
      const auto entry = board.latest(name);
      const std::string of_split = name.substr(name.find('/') + 1);
      // No sample counted for a metric that has no value of this step.
      const double value = entry && entry->step == step ? entry->value : std::nan("");
      if (of_split == "loss")
        found.loss = value;
      else
        found.entries.push_back({of_split, value});
    }
    const auto loss = board.latest("eval/loss");
    if (loss && loss->step == step) evaluated_.push_back(std::move(found));
  }
  bool after_save(HookContext&, std::int64_t step, const std::string& path) override {
    std::erase_if(evaluated_, [&](const EvaluationOutcome& of) { return of.global_step < step; });
    if (evaluated_.empty() || evaluated_.front().global_step != step) return false;
    EvaluationOutcome& evaluation = evaluated_.front();
    evaluation.checkpoint = path;
    export_here(run_dir_, strategies_, evaluation, false);
    mark_exported(run_dir_, path);
    last_ = evaluation;
    return false;
  }

 private:
  const std::string run_dir_;
  const std::vector<ExportStrategy> strategies_;
  std::optional<EvaluationOutcome>& last_;
  std::deque<EvaluationOutcome> evaluated_;  ///< in the order of steps; their checkpoints are being written
};

/// A set's options for evaluations, with those of the training set in their place.
void train_as_eval(Node& sets) {
  const Node* const train = sets.find("train");
  set_option(sets, "eval", train != nullptr && !is_null(*train) ? *train : options_map({}));
}

/// A configuration whose evaluation set is the training set, in its order.
Config evaluating_training_set(const Config& config) {
  Node root = resolved_config(config);
  const Node* const found = root.find("data");
  LOCKSTEP_CHECK(found != nullptr, "a configuration without data");
  Node data = *found;
  train_as_eval(data);
  for (const char* const key : {"inputs", "targets"}) {
    const Node* const entries = data.find(key);
    if (entries == nullptr || is_null(*entries)) continue;
    Node changed = *entries;
    for (auto& [name, entry] : changed.entries) train_as_eval(entry);
    set_option(data, key, changed);
  }
  set_option(root, "data", data);
  return changed_config(config, std::move(root));
}

}  // namespace

Experiment::Experiment(Estimator& estimator, ExperimentSpec spec)
    : estimator_(estimator), spec_(std::move(spec)) {
  shared([&] {
    const auto require = [](bool fits, const char* what, const char* advice) {
      if (!fits) throw Error(ErrorKind::usage, what, "experiment", advice);
    };
    require(spec_.train_steps.value_or(1) >= 1, "train_steps is less than 1", "Give 1 or more, or nothing.");
    require(spec_.min_eval_frequency >= 0, "min_eval_frequency is negative", "Give 0 or more.");
    require(spec_.train_steps_per_iteration.value_or(1) >= 1, "train_steps_per_iteration is less than 1",
            "Give 1 or more, or nothing.");
    require(spec_.eval_delay_seconds >= 0 && spec_.continuous_eval_throttle_seconds >= 0 &&
                spec_.most_wait_seconds >= 0,
            "a time is negative", "Give 0 or more seconds.");
    for (std::size_t i = 0; i < spec_.exports.size(); ++i) {
      const ExportStrategy& strategy = spec_.exports[i];
      require(strategy.keep >= 0, "an export keeps fewer than no folders", "Give 0 (all) or more.");
      require(is_export_name(strategy.name), "an export has no name for its folder",
              "Give letters, digits, - and _.");
      for (std::size_t j = 0; j < i; ++j)
        require(spec_.exports[j].name != strategy.name, "two exports have the same name",
                "Rename one of them.");
    }
  });
}

void Experiment::export_now(const EvaluationOutcome& evaluation, bool is_final) {
  if (!spec_.exports.empty())
    export_evaluated(estimator_.ranks().world(), estimator_.model_dir(), spec_.exports, evaluation, is_final);
}

EvaluationOutcome Experiment::told(EvaluationOutcome evaluation) const {
  if (spec_.evaluated) spec_.evaluated(evaluation);
  return evaluation;
}

TrainOptions Experiment::train_options() const {
  TrainOptions options{.max_steps = spec_.train_steps,
                       .accept_changes = spec_.accept_changes,
                       .evaluates = false,
                       .hooks = spec_.train_hooks};
  if (spec_.delay_workers_by_global_step) options.worker_delay_steps = kWorkerDelaySteps;
  return options;
}

TrainingOutcome Experiment::train() { return estimator_.train(spec_.train_input, train_options()); }

EvaluationOutcome Experiment::evaluate(const std::string& name) {
  return told(estimator_.evaluate(spec_.eval_input, {.name = name}));
}

TrainingOutcome Experiment::train_and_evaluate() {
  const RunSignals signals(process_environment);
  if (estimator_.cluster().is_evaluator()) {
    const WatchOutcome watched = continuous_eval();
    return {.exit_code = exit_code(watched.interruption.kind), .finished = !watched.interruption.any()};
  }
  if (!spec_.exports.empty()) export_lost();
  std::optional<EvaluationOutcome> exported;  // on the chief: the last one
  TrainOptions options = train_options();
  options.evaluates = true;
  options.eval_input = spec_.eval_input;
  options.eval_every_steps = spec_.min_eval_frequency;
  if (!spec_.exports.empty())
    options.saving_listeners.emplace_back(
        [&] { return std::make_unique<ExportListener>(estimator_.model_dir(), spec_.exports, exported); });
  TrainingOutcome outcome = estimator_.train(spec_.train_input, options);
  if (outcome.exit_code != 0 || spec_.exports.empty()) return outcome;
  Communicator& world = estimator_.ranks().world();
  bool was_exported = exported && exported->global_step == outcome.global_step;
  world.broadcast(&was_exported, sizeof was_exported, 0, "exports of the last evaluation");
  if (!was_exported) {  // the run was at its end, or a hook ended it
    export_now(told(estimator_.evaluate(spec_.eval_input)), true);
    return outcome;
  }
  shared([&] {
    agree(
        world,
        [&] {
          if (world.rank() == 0) export_here(estimator_.model_dir(), spec_.exports, *exported, true);
        },
        "exporting a checkpoint");
  });
  return outcome;
}

/// What an earlier job had evaluated when it was killed.
void Experiment::export_lost() {
  Communicator& world = estimator_.ranks().world();
  const std::string& run_dir = estimator_.model_dir();
  const FoundCheckpoint found = shared([&] { return find_checkpoint(world, run_dir, ""); });
  bool lost = false;
  shared([&] {
    agree(
        world, [&] { lost = world.rank() == 0 && lacks_exports(run_dir, found); },
        "looking for exports of an earlier job");
  });
  world.broadcast(&lost, sizeof lost, 0, "exports of an earlier job");
  if (!lost) return;
  const EvaluationOutcome evaluation = told(estimator_.evaluate(spec_.eval_input));
  export_now(evaluation, false);
  shared([&] {
    agree(
        world,
        [&] {
          if (world.rank() == 0) mark_exported(run_dir, evaluation.checkpoint);
        },
        "noting an export");
  });
}

bool Experiment::is_evaluated(const std::string& checkpoint) const {
  Communicator& world = estimator_.ranks().world();
  bool same = false;
  if (std::error_code failed; world.rank() == 0 && std::filesystem::exists(mark(), failed))
    same = read_whole_file(mark(), ErrorKind::output) == checkpoint;
  world.broadcast(&same, sizeof same, 0, "whether a checkpoint is evaluated");
  return same;
}

std::string Experiment::mark() const { return estimator_.model_dir() + "/eval_one_pass/evaluated"; }

TrainingOutcome Experiment::continuous_train_and_eval(const Predicate& go_on) {
  const RunSignals signals(process_environment);
  Communicator& world = estimator_.ranks().world();
  const std::int64_t each = spec_.train_steps_per_iteration.value_or(
      spec_.train_steps ? std::max<std::int64_t>(*spec_.train_steps / 10, 1) : 1000);
  std::int64_t reached = 0;
  for (;;) {
    // Iterations end at multiples, so that a job which was killed within one goes on to the same end.
    const std::int64_t next = (reached / each + 1) * each;
    TrainOptions options = train_options();
    options.stop_at = next;
    const TrainingOutcome outcome = estimator_.train(spec_.train_input, options);
    if (outcome.exit_code != 0) return outcome;
    const bool no_progress = reached == outcome.global_step;  // a hook ends each job
    reached = outcome.global_step;
    // An earlier job was here, and died within an iteration.
    if (reached > next && reached % each != 0 && !outcome.finished) continue;
    const FoundCheckpoint found = shared([&] { return find_checkpoint(world, estimator_.model_dir(), ""); });
    const std::string checkpoint = name_of_checkpoint(found.header);
    if (is_evaluated(checkpoint)) {  // an earlier job was killed after that
      if (outcome.finished || no_progress) return outcome;
      continue;
    }
    const EvaluationOutcome evaluation = evaluate();
    bool ends = outcome.finished || no_progress;
    const bool refused = !ends && go_on && !go_on(evaluation);
    ends = ends || refused;
    export_now(evaluation, ends);
    if (!refused)
      shared([&] {
        agree(
            world,
            [&] {
              if (world.rank() == 0) write_file_atomically(mark(), checkpoint);
            },
            "noting an evaluation");
      });
    if (ends) return outcome;
  }
}

WatchOutcome Experiment::watch(bool train_data, const std::string& name, const Predicate& go_on) {
  const RunSignals signals(process_environment);
  const InputFunction& input = train_data ? spec_.train_input : spec_.eval_input;
  return watch_checkpoints(
      estimator_.ranks(),
      {.run_dir = estimator_.model_dir(),
       .name = name,
       .delay_seconds = spec_.eval_delay_seconds,
       .throttle_seconds = spec_.continuous_eval_throttle_seconds,
       .most_wait_seconds = spec_.most_wait_seconds,
       .last_step = spec_.train_steps,
       .config =
           [&] {
             Config config = estimator_.config(Mode::evaluate, input);
             return train_data && !input ? evaluating_training_set(config) : config;
           },
       .evaluated =
           [&](const EvaluationOutcome& evaluation) {
             told(evaluation);
             if (!train_data)
               export_now(evaluation, spec_.train_steps && evaluation.global_step >= *spec_.train_steps);
             return !go_on || go_on(evaluation);
           }});
}

WatchOutcome Experiment::continuous_eval(const Predicate& go_on) { return watch(false, "continuous", go_on); }

WatchOutcome Experiment::continuous_eval_on_train_data(const Predicate& go_on) {
  return watch(true, "continuous_on_train_data", go_on);
}

EvaluationOutcome Experiment::test() {
  const RunSignals signals(process_environment);
  Communicator& world = estimator_.ranks().world();
  const FoundCheckpoint found = shared([&] { return find_checkpoint(world, estimator_.model_dir(), ""); });
  TrainOptions options = train_options();
  options.stop_at = found.exists() ? found.header.global_step + 1 : 1;
  estimator_.train(spec_.train_input, options);
  EvaluationOutcome evaluation = told(estimator_.evaluate(spec_.eval_input));
  export_now(evaluation, true);
  return evaluation;
}

}  // namespace lockstep
