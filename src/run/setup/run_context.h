// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What every command that computes is set up with, in stages: the place of the rank (rank_place.h), data
// (run_data.h), their normalisation (normalize_sets.h), model (run_model.h), size and threads (run_size.h),
// and communicators (run_communicators.h). All ranks pass them in the same order; every error is the same on
// all of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/environment.h"
#include "run/sections/config.h"
#include "run/setup/run_communicators.h"
#include "run/setup/run_model.h"
#include "run/setup/run_size.h"
#include "session/run_state.h"
#include "train/executor.h"
#include "train/model.h"
#include "train/workers.h"

namespace lockstep {

class Optimizer;

class RunContext {
 public:
  /// All ranks. Reads the data sets that are asked for, builds the model for their features, chooses shards
  /// and threads, and checks that all ranks have the same build, configuration, data and variables. Variables
  /// hold their initial values.
  RunContext(CommEnvironment& environment, Config config, std::optional<std::int64_t> shards_from_checkpoint,
             const RunNeeds& needs);

  ~RunContext();

  Communicator& world() { return environment_.world(); }
  bool is_chief() { return world().rank() == 0; }
  const Config& config() const { return config_; }
  const Dataset& train_data() const { return *data_.train; }
  /// The evaluation set; null if there is none.
  const Dataset* eval_data() const { return data_.eval.get(); }
  /// The same with the use of their samples.
  const UsedDataset& train_set() const { return data_.train; }
  const UsedDataset& eval_set() const { return data_.eval; }
  Model& model() { return model_; }
  /// That of the configuration, for which the model was made. There is one until it is taken, for a training.
  Optimizer& optimizer() { return *optimizer_; }
  std::unique_ptr<Optimizer> take_optimizer();
  Workers& workers() { return *workers_; }
  const ComputeDevice& device() const { return place_->device; }
  /// See lockstep::device_table().
  const std::string& device_table() const { return place_->device_table; }
  bool shares_gpus() const { return place_->shares_gpus; }
  int shards() const { return size_.shards; }
  int cores_per_rank() const { return place_->cores; }
  /// Ranks that share this rank's host, this one among them.
  int ranks_on_host() const { return place_->ranks_on_host; }
  std::uint64_t seed() const { return config_.general.seed; }

  /// One duplicate of the world per purpose.
  Communicator& gradients() { return communicators_->gradients(); }
  Communicator& control() { return communicators_->control(); }
  /// The communicator between GPUs, on a separate stream; null where gradients pass through the host.
  std::shared_ptr<DeviceCommunicator> direct_gradients() const { return communicators_->direct_gradients(); }
  ExecutorContext executor_context();
  /// What the bits of a step depend on in addition to the configuration: build, instruction set, libraries,
  /// data.
  std::vector<std::pair<std::string, std::string>> environment() const;
  /// Versions of a GPU's libraries, and its name; empty on a CPU.
  std::vector<std::pair<std::string, std::string>> gpu_libraries() const;
  /// What else the bits depend on, on a GPU: the libraries, the GPU, and the algorithms that the libraries
  /// have chosen so far. Empty on a CPU.
  std::vector<std::pair<std::string, std::string>> gpu_identity() const;
  /// When an executor is made: all ranks have chosen the same algorithms, and passed over the same ones,
  /// which the chief warns of. All ranks. Throws Error(config) that names what differs.
  void check_algorithms();
  /// See CommEnvironment::step_took.
  void step_took(double seconds) { environment_.step_took(seconds); }
  /// The host of every rank.
  const std::vector<std::string>& hosts() const { return environment_.hosts(); }
  bool may_overlap() const { return environment_.thread_multiple(); }

 private:
  void take_roles();
  void build_model(const RunNeeds& needs);
  void check_same_everywhere();

  // In the order in which they are made.
  CommEnvironment& environment_;
  Config config_;
  std::optional<RankPlace> place_;
  RunData data_;
  std::unique_ptr<Optimizer> optimizer_;  ///< null: the configuration has none, or it is taken
  Model model_;
  RunSize size_;
  std::unique_ptr<Workers> workers_;
  std::optional<RunCommunicators> communicators_;
  std::string warned_algorithms_;  ///< those that the chief has warned of
};

}  // namespace lockstep
