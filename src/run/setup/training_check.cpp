// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/training_check.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"
#include "optim/grouped_optimizer.h"
#include "optim/moving_average.h"
#include "run/setup/train_setup.h"
#include "session/run_state.h"
#include "train/evaluation_metrics.h"
#include "train/loss_report.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> step_metric_names(const Config& config, const Model& model) {
  const std::unique_ptr<Optimizer> optimizer = config.optimizer.make();
  const RunSchedules schedules(*optimizer, *model.graph, config.average);
  const LossReport report(*model.heads, !model.regularization.empty());
  std::vector<std::string> names{"loss", "accuracy"};
  names.insert(names.end(), report.names().begin(), report.names().end());
  for (const ScheduledNumber* number : schedules.numbers()) names.push_back(number->option());
  if (const auto* const grouped = dynamic_cast<const GroupedOptimizer*>(optimizer.get()))
    for (const GroupedOptimizer::GroupRate& rate : grouped->group_rates()) names.push_back(rate.name);
  if (config.precision.loss_scale.used()) names.emplace_back("loss_scale");
  if (config.gradients.measures()) names.emplace_back("gradient_norm");
  if (config.gradients.clips_norm()) names.emplace_back("clipped");
  if (config.gradients.noise_scale) names.emplace_back("noise_scale");
  for (const char* name : {"samples", "communication_seconds", "input_seconds"}) names.emplace_back(name);
  return names;
}

std::vector<std::string> evaluation_names(const Config& config, const Model& model, const UsedDataset& eval) {
  std::vector<std::string> names{"loss"};
  if (model.accuracy()) names.emplace_back("accuracy");
  const LossReport report(*model.heads);
  for (const std::string& part : report.names())
    if (model.reports(part)) names.push_back(part);
  for (const BoundMetric& bound : bind_metrics(config.eval.metrics, *model.heads, *model.graph, eval))
    if (bound.metric->has_value() && std::ranges::find(names, bound.name) == names.end())
      names.push_back(bound.name);
  return names;
}

/// Throws the hook's error with its name and its position.
void check_hook(const Config& config, const HookSpec& hook, const RunNames& names) {
  try {
    hook.make(config.hook_setting())->check(names);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("hook {}: {}", hook.entry.name, error.what_happened()),
                error.where().empty() ? hook.where : error.where(), error.advice());
  }
}

void check_same_shapes(std::span<const NamedShape> train, std::span<const NamedShape> eval) {
  for (std::size_t i = 0; i < train.size(); ++i)
    if (!(train[i].shape == eval[i].shape))
      throw Error(ErrorKind::data,
                  fmt::format("{}training samples are {}, evaluation samples {}",
                              train[i].name.empty() ? "" : fmt::format("input {}: ", train[i].name),
                              train[i].shape.to_string(), eval[i].shape.to_string()));
}

/// Class numbers must mean the same in both sets.
void check_same_classes(const Dataset& train, const Dataset& eval) {
  const std::vector<std::string>&of_train = train.class_names(), &of_eval = eval.class_names();
  if (of_train.empty() || of_eval.empty() || of_train == of_eval) return;
  const auto at = std::ranges::mismatch(of_train, of_eval);
  const auto name = [](auto place, const std::vector<std::string>& names) {
    return place == names.end() ? "nothing" : fmt::format("'{}'", *place);
  };
  throw Error(
      ErrorKind::data,
      fmt::format("the classes of the evaluation set are not those of the training set: class {} is {} "
                  "there, and {} in the training set",
                  at.in1 - of_train.begin(), name(at.in2, of_eval), name(at.in1, of_train)),
      eval.where(0),
      "Both sets need the same classes: folders of the same names, or the same option classes.");
}

/// Features must be the same columns in both sets.
void check_same_columns(const ReaderDataset& train, const ReaderDataset& eval) {
  if (train.table() == nullptr || eval.table() == nullptr) return;
  const std::vector<TableInfo::Column>&of_train = train.table()->features, &of_eval = eval.table()->features;
  for (std::size_t i = 0; i < std::min(of_train.size(), of_eval.size()); ++i) {
    const TableInfo::Column &column = of_train[i], &other = of_eval[i];
    if (column.values != other.values)
      throw Error(ErrorKind::data,
                  fmt::format("the values of {} are not those of the training set", name_of(other)),
                  eval.where(0), "Give both sets the same option categories.");
    if (!column.name.empty() && !other.name.empty() && column.name != other.name)
      throw Error(ErrorKind::data,
                  fmt::format("feature {} is {} in the evaluation set, but {} in the training set", i,
                              name_of(other), name_of(column)),
                  eval.where(0),
                  "Name the features with the option columns, which orders them alike in both.");
  }
}

}  // namespace

DatasetUse use_of_training_set(const Config& config, const RunNeeds& needs) {
  return {.ranks_on_host = needs.ranks_on_host, .random_order = config.train.shuffle == Shuffle::samples};
}

DatasetUse use_of_evaluation_set(const RunNeeds& needs) { return {.ranks_on_host = needs.ranks_on_host}; }

DataAndModel read_data(const Config& config, const RunNeeds& needs, OpenedData opened) {
  DataAndModel all;
  if (opened.train) all.train = std::move(*opened.train).finish(use_of_training_set(config, needs));
  if (opened.eval) all.eval = std::move(*opened.eval).finish(use_of_evaluation_set(needs));
  LOCKSTEP_REQUIRE(all.train || all.eval, ErrorKind::config,
                   "section data has no evaluation set: add `eval:` with its options");
  return all;
}

bool knows_shapes(const DataAndModel& all) {
  const auto knows_shape = [](const UsedDataset& set) {
    return !set || std::ranges::all_of(set->parts(), [](const DatasetPart& part) {
      return part.data->stages().knows_shape();
    });
  };
  return knows_shape(all.train) && knows_shape(all.eval);
}

void add_model(DataAndModel& all, const Config& config, Device& device, const RunNeeds& needs,
               double memory_bytes) {
  const Dataset& first = all.train ? *all.train : *all.eval;
  all.model = make_model(config.model, first.input_shapes(),
                         model_storage(config, needs.updates, needs.ranks, memory_bytes), device);
  if (needs.updates) config.optimizer.check(*all.model.variables);
  if (all.train) check_labels(all.model, all.train);
  if (all.eval) check_labels(all.model, all.eval);
  if (all.train && all.eval) check_same_shapes(all.train->input_shapes(), all.eval->input_shapes());
  if (all.train && all.eval) check_same_classes(*all.train, *all.eval);
  if (!all.train || !all.eval) return;
  const std::vector<DatasetPart> of_train = all.train->parts(), of_eval = all.eval->parts();
  for (std::size_t i = 0; i < of_train.size(); ++i) check_same_columns(*of_train[i].data, *of_eval[i].data);
}

RunNames run_names(const Config& config, const Model& model, const UsedDataset& train,
                   const UsedDataset& eval) {
  RunNames names{.step_metrics = step_metric_names(config, model)};
  if (train && !train->streams().empty())
    for (const char* name : {"input/wait_seconds", "input/blocks_ready", "input/reader_threads"})
      names.step_metrics.emplace_back(name);
  if (eval) names.evaluation = evaluation_names(config, model, eval);
  for (const Variable& variable : model.variables->variables()) {
    names.variables.push_back(variable.name);
    if (variable.trainable) names.trained_variables.push_back(variable.name);
  }
  if (eval)
    for (const MetricSpec& metric : config.eval.metrics)
      if (metric.entry->name == "confusion_matrix") names.matrices.push_back(metric.name);
  for (const Graph::Node& node : model.graph->nodes()) names.layers.push_back(node.layer->name());
  return names;
}

void check_names(const Config& config, const RunNames& names) {
  if (config.checkpoint.saver.retention.keep_best > 0) {
    const std::string& metric = config.checkpoint.best_metric;
    if (names.evaluation.empty())
      throw config.error("checkpoint", "keep_best", "there is no evaluation to compare checkpoints by",
                         "Add an evaluation set to section data, or leave keep_best at 0.");
    if (!names.evaluates(metric))
      throw config.error("checkpoint", "best_metric", fmt::format("no evaluation gives '{}'", metric),
                         names.advice_for(metric));
  }
  for (const SummarySpec& part : config.summary.parts) part.make()->check(names);
  for (const HookSpec& hook : config.hooks) check_hook(config, hook, names);
}

void check_noise_scale(const Config& config, const VariableStore& variables, std::int64_t shards) {
  if (!config.gradients.noise_scale) return;
  if (shards < 2)
    throw config.error("gradients", "noise_scale",
                       "a batch is one microshard, and there is nothing to compare it with",
                       "Set shards, or train.accumulate, to 2 or more.");
  if (config.optimizer.shards())
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
    const MetricFollower* const follower = number->follower();
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
  }
}

void check_shard(const Config& config, const Optimizer& optimizer, bool on_gpu, bool records) {
  if (!config.optimizer.shards()) return;
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

void check_room(const Config& config, const std::string& run_dir, const VariableStore& variables,
                const Optimizer& optimizer, std::size_t more_bytes) {
  const CheckpointHeader header = run_header(0, {}, 1, config.general.seed, resolved_config_text(config));
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
