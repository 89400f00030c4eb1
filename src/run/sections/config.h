// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A run's configuration: YAML text or a tree of nodes, plus overrides, checked, as typed structs. Each struct
// is declared in the room that uses it, next to its table of options; YAML ends here. Reads one file and
// loads its plugins, no MPI: every rank may load it, and errors appear before anything starts.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communication_options.h"
#include "config/params.h"
#include "data/data_options.h"
#include "optim/average_rule.h"
#include "optim/clip_rule.h"
#include "optim/optimizer.h"
#include "session/checkpoint_options.h"
#include "session/hooks/hook_table.h"
#include "session/summaries/summary_options.h"
#include "session/training_options.h"
#include "session/warm_start.h"
#include "train/evaluation_options.h"
#include "train/gpu_options.h"
#include "train/model.h"
#include "train/precision_options.h"
#include "train/server_layout.h"

namespace lockstep {

/// Keys at the top level that are no section.
struct GeneralOptions {
  std::uint64_t seed = 0;
  std::optional<std::int64_t> shards = {};  ///< microshards per global batch; none: default_shards.h
  std::optional<int> threads = {};          ///< per rank; none: the cores that the rank may use
  std::string device = "cpu";
};

/// More keys at the top level, which are read by themselves.
struct BaseDirectory {
  std::optional<std::string> path;
};
struct Plugins {
  std::optional<std::vector<std::string>> paths;
};

/// What a configuration is read for. Evaluation and prediction need neither an optimizer nor an end.
enum class ConfigUse { training, inference };

struct Config {
  std::string path;            ///< the file; empty if the configuration came from elsewhere
  std::string base_directory;  ///< absolute; where relative paths in the configuration begin
  GeneralOptions general;
  TrainingOptions train;
  ClipRule gradients;
  EvaluationOptions eval;
  CheckpointOptions checkpoint;
  std::optional<WarmStartOptions> warm_start;
  SummaryOptions summary;
  CommunicationOptions comm;
  ClusterOptions cluster;
  PrecisionOptions precision;
  GpuOptions gpu;
  DataOptions data;
  ModelOptions model;
  OptimizerOptions optimizer;
  std::optional<AverageOptions> average = {};
  std::vector<HookSpec> hooks;

  Node root;                                            ///< as written, with overrides applied
  std::map<std::string, Params, std::less<>> sections;  ///< for positions in messages; "" is the top level

  /// Samples of one step of evaluation.
  std::int64_t evaluation_batch_size() const { return eval.batch_size.value_or(train.batch_size); }
  HookSetting hook_setting() const { return {base_directory}; }
  /// It has an optimizer and an end. Without them it is for evaluation and prediction alone.
  bool can_train() const { return !optimizer.entry.name.empty() && (train.steps || train.epochs); }
  /// A section as it was checked; "": the top level. Throws Error(usage) if there is none of the name.
  const Params& section(std::string_view name) const;
  /// An Error(config) about an option that was found wrong later, with its position.
  Error error(std::string_view name, std::string_view option, std::string what_happened,
              std::string advice = {}) const;
};

/// Reads and checks a file. `overrides` are "a.b.c=value" (--set), applied in order before the check.
/// Throws Error(config) with position, or Error(usage) for an override of a wrong form.
Config load_config(const std::string& path, std::span<const std::string> overrides = {});
/// The configuration of a file of which only the section `data` is needed: reads it, comm, threads,
/// base_directory and plugins. Other sections are neither needed nor checked, and have their defaults.
Config load_data_config(const std::string& path, std::span<const std::string> overrides = {});
/// The configuration of a text, such as that in a checkpoint. `name` is what positions begin with;
/// relative paths begin in the current folder unless the text has a base_directory.
Config config_from_text(std::string_view text, const std::string& name,
                        std::span<const std::string> overrides = {});
/// The same for the options of a program, which stand for themselves: ${NAME} is no variable. The position of
/// a node that has none is its path: "`name`, model.layers.2.conv2d.filters".
Config config_from_node(Node root, const std::string& name, ConfigUse use);
/// `config` with another tree (made of its resolved_config()) and other values, checked again.
Config changed_config(const Config& config, Node root, std::span<const std::string> overrides = {});

/// Where `train CONFIG` puts its results without --run-dir: "runs/digits" for "examples/digits.yaml".
std::string default_run_directory(const std::string& config_path);
/// Layers that do not give an option whose default has changed get the default of earlier programs
/// (changed_defaults.h). Returns a sentence per such option.
std::vector<std::string> use_former_defaults(Config& config);
/// The configuration as run: every option of the sections with its value, base_directory absolute.
Node resolved_config(const Config& config);
/// The same as YAML: a run directory's config.yaml.
std::string resolved_config_text(const Config& config);

}  // namespace lockstep
