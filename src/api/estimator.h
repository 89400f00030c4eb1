// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A model with its run directory, to be trained, evaluated and used:
//
//   run_on_ranks({}, false, [](CommEnvironment& ranks) {
//     Estimator estimator(ranks, model_function, {.model_dir = "runs/digits", .train = {.batch_size = 64}});
//     estimator.train(training_samples, {.max_steps = 500});
//     std::printf("%g\n", estimator.evaluate(other_samples).value("accuracy"));
//     return 0;
//   });
//
// What the model function and the input functions give is written as a configuration, and everything else is
// as `lockstep train`, `evaluate` and `predict` do it with that configuration: the bits, checkpoints and
// their resumption, hooks, files. Every method is called on all ranks. Errors are as in run_on_ranks(): those
// that all ranks have are thrown as SharedError, others end the run. After an error the estimator refuses
// further calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/estimator_spec.h"
#include "api/input.h"
#include "comm/cluster_roles.h"
#include "comm/environment.h"
#include "run/jobs/onnx_export.h"
#include "run/jobs/outcomes.h"
#include "run/jobs/prediction_stream.h"

namespace lockstep {

class Params;     // lockstep/base.h
class Predictor;  // lockstep/predictor.h
struct PredictorOptions;
class CheckpointSaverListener;  // lockstep/session.h
class VariableStore;            // lockstep/layer.h
struct Config;                  // lockstep/training.h
struct ParamSpec;
struct TrainingJob;
struct TrainingCall;

using ListenerFunction = std::function<std::unique_ptr<CheckpointSaverListener>()>;

struct TrainOptions {
  /// The steps that this call trains; a second call trains as many again. At most one of the two;
  /// without both section `train` of the configuration says when the run ends.
  std::optional<std::int64_t> steps = {};
  /// The global step at which training ends; nothing happens if the run is there already.
  std::optional<std::int64_t> max_steps = {};
  /// The samples of evaluations during training, as section `eval` says. Needs Mode::evaluate of the model
  /// function.
  InputFunction eval_input = {};
  /// The number of steps between evaluations, instead of section `eval`; 0: one evaluation at the end only.
  /// Each evaluation has a checkpoint: the number is rounded up to a multiple of checkpoint.every_steps;
  /// without that, evaluations follow the checkpoints of checkpoint.every_epochs.
  std::optional<std::int64_t> eval_every_steps = {};
  /// The call ends at this global step at the latest. The run does not: its end is where it was.
  std::optional<std::int64_t> stop_at = {};
  /// True: the run continues although its data, or values that change the result, have changed.
  bool accept_changes = false;
  /// True: the run continues although its samples are others than before, of the same shape and labels: a set
  /// that a simulation adds to. Variables, optimizer slots, the step, and the epochs and samples that are
  /// done stay as they are; the next batches are those of the new set. All else is compared as usual.
  bool accept_new_samples = false;
  /// The value that replaces cluster.worker_delay_steps.
  std::optional<double> worker_delay_steps = {};
  /// The function that replaces RunConfig::device_fn.
  DeviceFunction device_fn = {};
  /// False: no evaluations, whatever section `eval` says.
  bool evaluates = true;
  std::vector<HookFunction> hooks = {};
  std::vector<ListenerFunction> saving_listeners = {};
  /// Sets values of variables before the first step of a new run (VariableStore::mark_set). It must do the
  /// same on all ranks.
  std::function<void(VariableStore&)> init_fn = {};
};

struct EvaluateOptions {
  std::string name = {};        ///< not empty: the results are also in event files, in eval_NAME
  std::string checkpoint = {};  ///< a file, "last" or "best"; empty: the last (newest intact) one
  bool averages = true;
  std::vector<PassHookFunction> hooks = {};  ///< before those of the model function
};

struct PredictOptions {
  std::string checkpoint = {};  ///< a file, "last" or "best"; empty: the last (newest intact) one
  bool averages = true;
  std::vector<PassHookFunction> hooks = {};
};

struct ExportOptions {
  std::string folder = {};      ///< empty: export/model of the run directory
  std::string checkpoint = {};  ///< a file, "last" or "best"; empty: the last (newest intact) one
  /// The same as checkpoint = "best": the best of those that checkpoint.keep_best keeps.
  bool best = false;
  bool averages = true;  ///< a variable has the values of its moving average, if there is one
};

class Estimator {
 public:
  /// `params` is what the model function gets. `ranks` outlives the estimator.
  Estimator(CommEnvironment& ranks, ModelFunction model, RunConfig config);
  Estimator(CommEnvironment& ranks, ModelFunction model, RunConfig config, Params params);
  /// The estimator of a configuration, which also says what the samples are: input functions are left out, or
  /// an error.
  Estimator(CommEnvironment& ranks, Config config, std::string model_dir);
  ~Estimator();
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;

  CommEnvironment& ranks();
  const std::string& model_dir() const;
  /// Which task this rank is, and the tasks of all ranks: by section `cluster`, TF_CONFIG or MPI. All ranks.
  ClusterRoles cluster();

  /// Trains, or continues from the newest checkpoint of the run directory. Returns when the run has ended, or
  /// a signal or the end of the job asked it to stop (TrainingOutcome::exit_code).
  TrainingOutcome train(const InputFunction& input, const TrainOptions& options = {});
  /// Trains as a job of the program, for an estimator of a configuration.
  TrainingOutcome train(TrainingJob job);

  /// Every sample once.
  EvaluationOutcome evaluate(const InputFunction& input, const EvaluateOptions& options = {});
  /// The evaluation set of a configuration.
  EvaluationOutcome evaluate(const EvaluateOptions& options = {}) {
    return evaluate(InputFunction(), options);
  }

  /// Every sample once, in order. The samples may have labels, which are not looked at.
  std::unique_ptr<PredictionStream> predict(const InputFunction& input, const PredictOptions& options = {});

  /// The model of a checkpoint for predictions of this process alone, from values in memory: what it does
  /// afterwards is local (api/predictor.h). The model function is not called: the net is that of training.
  /// Rank 0 reads the checkpoint.
  Predictor predictor();
  Predictor predictor(const PredictorOptions& options);
  /// Writes the net as an ONNX file, on rank 0. The same result on all ranks.
  OnnxExport export_onnx(const std::string& output, const OnnxExportOptions& options = {});

  /// Writes a checkpoint with its configuration as the folder FOLDER/step-00000480, which `lockstep evaluate`
  /// and `lockstep predict` take like a run directory (export_strategy.h). Returns its path. A folder appears
  /// complete or not at all.
  std::string export_model(const ExportOptions& options = {});

  /// The configuration of a mode, as train(), evaluate() or predict() would use it: YAML that `lockstep` runs
  /// if its layers and samples do not need this program.
  std::string configuration(Mode mode, const InputFunction& input, const InputFunction& eval_input = {});
  /// The same, checked, with the samples of Input::local() gathered for it, which stay until the estimator is
  /// used again. All ranks. Throws SharedError.
  Config config(Mode mode, const InputFunction& input, const InputFunction& eval_input = {});

 private:
  friend class TrainingSession;
  /// What train() runs.
  TrainingCall training_call(const InputFunction& input, const TrainOptions& options);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The model section of a YAML file, with its blocks expanded, for add_layers() and to compare with a model
/// in C++. Throws Error(config).
Node model_from_yaml(const std::string& path);
/// The options of a map in a YAML file (`section`, such as "params"; empty: the whole file), checked against
/// a table, for a model function. Throws Error(config) with positions.
Params params_from_yaml(const std::string& path, std::string_view section, std::span<const ParamSpec> table);
/// Options written in C++: make_params({{"filters", 32}}, table).
Params make_params(std::initializer_list<std::pair<std::string_view, OptionValue>> values,
                   std::span<const ParamSpec> table);

}  // namespace lockstep
