// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "api/estimator_config.h"
#include "api/local_samples.h"
#include "api/predictor.h"
#include "api/training_call.h"
#include "api/training_times.h"
#include "comm/agree.h"
#include "comm/shared_error.h"
#include "config/params.h"
#include "config/yaml_node.h"
#include "core/error.h"
#include "core/nested_error.h"
#include "core/process_environment.h"
#include "core/run_file.h"
#include "core/run_signals.h"
#include "run/jobs/evaluation_job.h"
#include "run/jobs/export_strategy.h"
#include "run/jobs/training_job.h"
#include "run/sections/blocks.h"
#include "run/sections/configuration_file.h"
#include "run/sections/tf_config.h"
#include "session/checkpoint_choice.h"
#include "session/run_record.h"
#include "session/run_state.h"

namespace lockstep {

namespace {

Error no_input(std::string_view method) {
  return Error(ErrorKind::usage, fmt::format("Estimator::{} has no input function", method), "",
               "Give one; only an estimator of a configuration has samples of its own.");
}

Error input_beside_configuration(std::string_view method) {
  return Error(ErrorKind::usage,
               fmt::format("Estimator::{} has an input function, and its configuration has samples", method),
               "", "Leave the input function out, or write section data of the configuration.");
}

}  // namespace

struct Estimator::Impl {
  CommEnvironment& ranks;
  std::string model_dir;
  std::optional<Config> config = {};  ///< of an estimator of a configuration
  ModelFunction model = {};
  std::optional<RunConfig> run = {};
  Params params = {};
  std::string failure = {};
  double begin = unix_time();    ///< of the job
  GatheredInputs gathered = {};  ///< of the call, or of config()

  EstimatorSpec spec(Mode mode) const { return model(Features(), LabelColumns(), mode, params); }

  Node node(const RunConfig& config_of_run, Mode mode, const InputFunction& input,
            const InputFunction& eval_input, std::vector<HookFunction>* hooks = nullptr,
            std::vector<PassHookFunction>* pass_hooks = nullptr,
            std::vector<LocalPointer>* locals = nullptr) const {
    if (!model) throw Error(ErrorKind::bug, "an estimator of a configuration has no model function");
    const EstimatorSpec main = spec(mode);
    std::optional<EstimatorSpec> evaluation;
    if (mode == Mode::train && eval_input) evaluation = spec(Mode::evaluate);
    if (hooks != nullptr) *hooks = main.training_hooks;
    if (pass_hooks != nullptr)
      *pass_hooks = mode == Mode::predict ? main.prediction_hooks : main.evaluation_hooks;
    const Input samples = input();
    const std::optional<Input> others = eval_input ? std::optional(eval_input()) : std::nullopt;
    if (locals != nullptr)
      *locals = local_samples_of(samples, others ? &*others : nullptr, mode == Mode::train);
    return estimator_config(config_of_run, mode, main, evaluation ? &*evaluation : nullptr, samples,
                            others ? &*others : nullptr);
  }

  static Config checked(Node root, Mode mode) {
    return config_from_node(std::move(root), "the estimator's configuration",
                            mode == Mode::train ? ConfigUse::training : ConfigUse::inference);
  }

  void check_input(std::string_view method, const InputFunction& input) const {
    if (!input && !config) throw no_input(method);
    if (input && config) throw input_beside_configuration(method);
  }

  /// For a call of train(); `hooks` gets those of the model function.
  Config make_training_config(const InputFunction& input, const TrainOptions& options,
                              std::vector<HookFunction>& hooks) {
    RunConfig changed_run = *run;
    if (options.max_steps) {
      changed_run.train.steps = *options.max_steps;
      changed_run.train.epochs = {};
    } else if (options.steps && run->train.steps.node() == nullptr && run->train.epochs.node() == nullptr) {
      changed_run.train.steps = *options.steps;  // until the checkpoint is known
    } else if (options.stop_at && run->train.steps.node() == nullptr && run->train.epochs.node() == nullptr) {
      changed_run.train.steps = *options.stop_at;  // a run without an end
    }
    if (options.eval_every_steps) set_evaluations(changed_run, *options.eval_every_steps);
    if (options.worker_delay_steps) changed_run.cluster.worker_delay_steps = *options.worker_delay_steps;
    return make_config(changed_run, Mode::train, input, options.eval_input, &hooks);
  }

  /// What a model or input function throws on one rank ends the call on all.
  Config make_config(const RunConfig& config_of_run, Mode mode, const InputFunction& input,
                     const InputFunction& eval_input, std::vector<HookFunction>* hooks = nullptr,
                     std::vector<PassHookFunction>* pass_hooks = nullptr) {
    return shared([&] {
      std::optional<Config> made;
      std::vector<LocalPointer> locals;
      gathered = {};
      agree(
          ranks.world(),
          [&] {
            try {
              made = checked(node(config_of_run, mode, input, eval_input, hooks, pass_hooks, &locals), mode);
            } catch (const Error&) {
              throw;
            } catch (const std::exception& error) {
              throw_with_cause(
                  Error(ErrorKind::usage,
                        fmt::format("the model function, or an input function, failed: {}", error.what())),
                  std::current_exception());
            }
          },
          "calling the model function");
      gathered = gather_local_inputs(ranks.world(), locals);
      return std::move(*made);
    });
  }

  /// Runs a method; remembers that it failed.
  template <typename Body>
  auto guarded(std::string_view method, Body body) {
    if (!failure.empty())
      throw SharedError(Error(ErrorKind::usage,
                              fmt::format("Estimator::{} is called after an error of this estimator", method),
                              model_dir, fmt::format("The error was: {}. Make a new estimator.", failure)));
    const std::unique_ptr<GatheredInputs, void (*)(GatheredInputs*)> release(
        &gathered, [](GatheredInputs* inputs) { *inputs = {}; });
    try {
      return body();
    } catch (const Error& error) {
      failure = error.what_happened();
      throw;
    } catch (const std::exception& error) {
      failure = error.what();
      throw;
    }
  }
};

Estimator::Estimator(CommEnvironment& ranks, ModelFunction model, RunConfig config)
    : Estimator(ranks, std::move(model), std::move(config), Params()) {}

Estimator::Estimator(CommEnvironment& ranks, ModelFunction model, RunConfig config, Params params)
    : impl_(new Impl{.ranks = ranks, .model_dir = config.model_dir}) {
  if (config.model_dir.empty())
    throw SharedError(
        Error(ErrorKind::usage, "the estimator has no run directory", "", "Set RunConfig::model_dir."));
  impl_->model = std::move(model);
  impl_->run = std::move(config);
  impl_->params = std::move(params);
}

Estimator::Estimator(CommEnvironment& ranks, Config config, std::string model_dir)
    : impl_(new Impl{.ranks = ranks, .model_dir = std::move(model_dir)}) {
  impl_->config = std::move(config);
}

Estimator::~Estimator() = default;

CommEnvironment& Estimator::ranks() { return impl_->ranks; }
const std::string& Estimator::model_dir() const { return impl_->model_dir; }

ClusterRoles Estimator::cluster() {
  return impl_->guarded("cluster", [&] {
    return shared([&] {
      CommEnvironment& ranks = impl_->ranks;
      ClusterOptions options;
      ClusterDescription tasks;
      agree(
          ranks.world(),
          [&] {
            const Params section =
                impl_->config ? impl_->config->section("cluster")
                              : Params(impl_->run->cluster.node(), cluster_table(), "section cluster");
            options = cluster_options(section);
            resolve_tf_config(options, section, process_environment);
            tasks = cluster_tasks(section, process_environment);
            if (options.used()) check_workers(options, ranks.world().size());
          },
          "reading the tasks of the cluster");
      return cluster_roles(ranks.world(), ranks.hosts(), tasks, options.servers);
    });
  });
}

TrainingOutcome Estimator::train(const InputFunction& input, const TrainOptions& options) {
  return impl_->guarded("train", [&] {
    TrainingCall call = training_call(input, options);
    return run_training_job(impl_->ranks, std::move(call.config), call.job);
  });
}

TrainingCall Estimator::training_call(const InputFunction& input, const TrainOptions& options) {
  return impl_->guarded("train", [&] {
    shared([&] {
      if (options.steps && options.max_steps)
        throw Error(ErrorKind::usage, "Estimator::train has steps and max_steps", "", "Give one of them.");
      if (options.steps.value_or(1) < 1 || options.max_steps.value_or(1) < 1 ||
          options.stop_at.value_or(1) < 1)
        throw Error(ErrorKind::usage, "Estimator::train has no steps to train", "", "Give 1 or more.");
      impl_->check_input("train", input);
      if (impl_->config && options.eval_input) throw input_beside_configuration("train");
    });
    auto signals = std::make_unique<RunSignals>(process_environment);
    TrainingJob job{.run_dir = impl_->model_dir,
                    .accept_changes = options.accept_changes,
                    .accept_new_samples = options.accept_new_samples,
                    .more_steps = options.steps,
                    .stop_at = options.stop_at};
    Config config = impl_->config ? shared([&] { return changed(*impl_->config, options); })
                                  : impl_->make_training_config(input, options, job.additions.hooks);
    job.additions.hooks.insert(job.additions.hooks.end(), options.hooks.begin(), options.hooks.end());
    job.additions.listeners = options.saving_listeners;
    job.additions.init_fn = options.init_fn;
    job.additions.evaluates = options.evaluates;
    job.additions.device_fn = options.device_fn || !impl_->run ? options.device_fn : impl_->run->device_fn;
    job.job_end = job_end(config.train.time_limit_seconds, impl_->begin, process_environment);
    return TrainingCall{std::move(config), std::move(job), std::move(impl_->gathered), std::move(signals)};
  });
}

TrainingOutcome Estimator::train(TrainingJob job) {
  return impl_->guarded("train", [&] {
    LOCKSTEP_CHECK(impl_->config, "an estimator without a configuration");
    job.run_dir = impl_->model_dir;
    return run_training_job(impl_->ranks, *impl_->config, job);
  });
}

EvaluationOutcome Estimator::evaluate(const InputFunction& input, const EvaluateOptions& options) {
  return impl_->guarded("evaluate", [&] {
    shared([&] { impl_->check_input("evaluate", input); });
    std::vector<PassHookFunction> of_model;
    const Config config =
        impl_->config ? *impl_->config
                      : impl_->make_config(*impl_->run, Mode::evaluate, input, input, nullptr, &of_model);
    std::vector<PassHookFunction> hooks = options.hooks;
    hooks.insert(hooks.end(), of_model.begin(), of_model.end());
    return run_evaluation_job(impl_->ranks, config,
                              {.run_dir = impl_->model_dir,
                               .checkpoint = options.checkpoint,
                               .averages = options.averages,
                               .name = options.name,
                               .hooks = hooks});
  });
}

std::unique_ptr<PredictionStream> Estimator::predict(const InputFunction& input,
                                                     const PredictOptions& options) {
  return impl_->guarded("predict", [&] {
    shared([&] { impl_->check_input("predict", input); });
    std::vector<PassHookFunction> of_model;
    Config config = impl_->config
                        ? *impl_->config
                        : impl_->make_config(*impl_->run, Mode::predict, input, input, nullptr, &of_model);
    std::vector<PassHookFunction> hooks = options.hooks;
    hooks.insert(hooks.end(), of_model.begin(), of_model.end());
    Communicator& world = impl_->ranks.world();
    const FoundCheckpoint found = shared([&] {
      FoundCheckpoint checkpoint = open_checkpoint(world, impl_->model_dir, options.checkpoint);
      if (!checkpoint.exists())
        throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", impl_->model_dir,
                    "Train first, or name one.");
      return checkpoint;
    });
    auto context = std::make_unique<RunContext>(
        impl_->ranks, std::move(config), found.header.shards,
        RunNeeds{.eval = true, .kept_in = impl_->model_dir, .kept = found.header.kept, .described = true});
    shared([&] { restore_variables(world, found, *context->model().variables, options.averages); });
    return std::make_unique<PredictionStream>(std::move(context), hooks);
  });
}

Predictor Estimator::predictor() { return predictor(PredictorOptions()); }

Predictor Estimator::predictor(const PredictorOptions& options) {
  return impl_->guarded("predictor", [&] {
    return shared([&] { return Predictor::load(impl_->ranks.world(), impl_->model_dir, options); });
  });
}

OnnxExport Estimator::export_onnx(const std::string& output, const OnnxExportOptions& options) {
  return impl_->guarded("export_onnx", [&] {
    return shared(
        [&] { return lockstep::export_onnx(impl_->ranks.world(), impl_->model_dir, output, options); });
  });
}

std::string Estimator::export_model(const ExportOptions& options) {
  return impl_->guarded("export_model", [&] {
    Communicator& world = impl_->ranks.world();
    const std::string folder = options.folder.empty() ? impl_->model_dir + "/export/model" : options.folder;
    return shared([&] {
      if (options.best && !options.checkpoint.empty())
        throw Error(ErrorKind::usage, "Estimator::export_model has a checkpoint, and is to take the best", "",
                    "Give one of them.");
      const FoundCheckpoint found = open_checkpoint(
          world, impl_->model_dir, options.best ? std::string(kBestCheckpoint) : options.checkpoint);
      if (!found.exists())
        throw Error(ErrorKind::checkpoint, "there is no checkpoint to export", impl_->model_dir,
                    "Train first, or name one.");
      agree(
          world,
          [&] {
            if (world.rank() != 0) return;
            if (options.folder.empty()) make_run_folder(impl_->model_dir, "export/model", ErrorKind::output);
            export_checkpoint(impl_->model_dir, folder, *found.file, options.averages);
          },
          "exporting a checkpoint");
      return export_path(folder, found.header.global_step);
    });
  });
}

std::string Estimator::configuration(Mode mode, const InputFunction& input, const InputFunction& eval_input) {
  if (impl_->config) return resolved_config_text(*impl_->config);
  Node root = impl_->node(*impl_->run, mode, input, mode == Mode::train ? eval_input : input);
  escape_variables(root);  // the values of a program are what they are
  return to_yaml(root);
}

Config Estimator::config(Mode mode, const InputFunction& input, const InputFunction& eval_input) {
  if (impl_->config) return *impl_->config;
  return impl_->make_config(*impl_->run, mode, input, mode == Mode::train ? eval_input : input);
}

Node model_from_yaml(const std::string& path) {
  const Node root = read_configuration(path);
  const Node* model = root.find("model");
  if (model == nullptr)
    throw Error(ErrorKind::config, "has no section model", path, "Give a configuration of a run.");
  return with_expanded_blocks(*model);
}

Params params_from_yaml(const std::string& path, std::string_view section, std::span<const ParamSpec> table) {
  const Node root = read_configuration(path);
  if (section.empty()) return Params(root, table, path);
  const Node* found = root.find(section);
  return Params(found != nullptr ? *found : Node{}, table, fmt::format("section {}", section));
}

Params make_params(std::initializer_list<std::pair<std::string_view, OptionValue>> values,
                   std::span<const ParamSpec> table) {
  return Params(options_map(values), table, "params");
}

}  // namespace lockstep
