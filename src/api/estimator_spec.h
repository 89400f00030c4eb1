// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a model function gives, and what else sets up a run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/model_builder.h"
#include "api/options.h"
#include "run/jobs/pass_hook.h"

namespace lockstep {

class Params;            // lockstep/base.h
class Hook;              // lockstep/hook.h
struct VariableToPlace;  // lockstep/cluster.h
using DeviceFunction = std::function<int(const VariableToPlace&)>;

enum class Mode { train, evaluate, predict };

/// Makes a hook for one call of train().
using HookFunction = std::function<std::unique_ptr<Hook>()>;

/// How the loss is minimised.
struct TrainOp {
  Choice optimizer = {};            ///< optimizers::adam({.learning_rate = 0.001})
  sections::Optimizer beside = {};  ///< groups, sharding, gating
  sections::Gradients gradients = {};
  Setting<OptionValue> average = {};  ///< averages::ema({...})
  std::vector<sections::Regularization> regularization = {};
};

/// The model of one mode. Its layers are the same in all modes: dropout, batch norm and noise know the mode
/// themselves.
struct EstimatorSpec {
  /// The loss, which training and evaluation need.
  TrainingLoss loss = {};
  /// The optimizer and its settings, which training needs.
  TrainOp train_op = {};
  /// Metrics in addition to the loss, and to the accuracy of a classifier.
  std::vector<Choice> eval_metrics = {};
  /// What predict() gives, by name: outputs of layers, as they are. Empty: what the losses make of the
  /// outputs that they read (probabilities of classes).
  std::vector<std::pair<std::string, LayerOutput>> predictions = {};
  std::vector<HookFunction> training_hooks = {};
  /// Hooks of an estimator's evaluate() and predict(), not of evaluations during training.
  std::vector<PassHookFunction> evaluation_hooks = {}, prediction_hooks = {};
};

/// Gives the model of a mode. Called on all ranks, where it must give the same. `params` are those of the
/// estimator.
using ModelFunction = std::function<EstimatorSpec(const Features& features, const LabelColumns& labels,
                                                  Mode mode, const Params& params)>;

/// The parts of a run that are not its model. See docs/config.md for each. What is left out has the default
/// of a configuration; but `checkpoint` and `eval` mean only the times that are given: with
/// {.checkpoint = {.every_steps = 100}} nothing is saved by epochs.
struct RunConfig {
  std::string model_dir;  ///< the run directory
  sections::Train train;
  sections::General general = {};
  sections::Eval eval = {};
  sections::Checkpoint checkpoint = {};
  sections::Summary summary = {};
  sections::Comm comm = {};
  sections::Cluster cluster = {};
  /// Where variables live, instead of cluster.placement (train/device_functions.h).
  DeviceFunction device_fn = {};
  sections::Precision precision = {};
  sections::Gpu gpu = {};
  std::optional<sections::WarmStart> warm_start = {};
  std::vector<Choice> hooks = {};
};

}  // namespace lockstep
