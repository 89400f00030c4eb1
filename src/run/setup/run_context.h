// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What every command that computes is set up with: ranks, device, data, model, threads. Set up in the same
// order on all ranks; every error is the same on all of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/environment.h"
#include "run/sections/config.h"
#include "run/setup/compute_device.h"
#include "run/setup/training_check.h"
#include "session/run_state.h"
#include "train/executor.h"
#include "train/model.h"
#include "train/workers.h"

namespace lockstep {

class RunContext {
 public:
  /// All ranks. Reads the data sets that are asked for, builds the model for their features, chooses shards
  /// and threads, and checks that all ranks have the same build, configuration, data and variables. Variables
  /// hold their initial values.
  RunContext(CommEnvironment& environment, Config config, std::optional<std::int64_t> shards_from_checkpoint,
             const RunNeeds& needs);

  Communicator& world() { return environment_.world(); }
  bool is_chief() { return world().rank() == 0; }
  const Config& config() const { return config_; }
  const Dataset& train_data() const { return *train_set_; }
  /// Null if there is none.
  const Dataset* eval_data() const { return eval_set_.get(); }
  /// The same with the use of their samples.
  const UsedDataset& train_set() const { return train_set_; }
  const UsedDataset& eval_set() const { return eval_set_; }
  Model& model() { return model_; }
  Workers& workers() { return *workers_; }
  const ComputeDevice& device() const { return *device_; }
  /// See lockstep::device_table().
  const std::string& device_table() const { return device_table_; }
  bool shares_gpus() const { return shares_gpus_; }
  int shards() const { return shards_; }
  int cores_per_rank() const { return cores_; }
  /// Ranks that share this rank's host, this one among them.
  int ranks_on_host() const { return ranks_on_host_; }
  std::uint64_t seed() const { return config_.general.seed; }

  /// One duplicate of the world per purpose.
  Communicator& gradients() { return *gradients_; }
  Communicator& control() { return *control_; }
  /// Between GPUs, on a separate stream; null where gradients pass through the host.
  std::shared_ptr<DeviceCommunicator> direct_gradients() { return direct_gradients_; }
  ExecutorContext executor_context();
  /// What the bits of a step depend on in addition to the configuration: build, instruction set, libraries,
  /// data.
  std::vector<std::pair<std::string, std::string>> environment() const;
  /// On a GPU, what else its bits depend on: the libraries, the GPU, and the algorithms that the libraries
  /// have chosen so far. Empty on a CPU.
  std::vector<std::pair<std::string, std::string>> gpu_identity() const;
  /// When the models are made: all ranks have chosen the same algorithms. All ranks. Throws Error(config)
  /// that names what differs.
  void check_algorithms();
  /// See CommEnvironment::step_took.
  void step_took(double seconds) { environment_.step_took(seconds); }
  /// The host of every rank.
  const std::vector<std::string>& hosts() const { return environment_.hosts(); }
  bool may_overlap() const { return environment_.thread_multiple(); }

 private:
  void check_same_everywhere();
  void connect_devices();
  void connect_devices_by_mpi();
  std::vector<std::pair<std::string, std::string>> gpu_libraries() const;

  CommEnvironment& environment_;
  Config config_;
  UsedDataset train_set_, eval_set_;
  std::optional<ComputeDevice> device_;
  std::string device_table_;
  bool shares_gpus_ = false;
  Model model_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Communicator> gradients_, sync_, control_;
  std::optional<DeviceStream> gradient_stream_;
  std::shared_ptr<DeviceCommunicator> direct_gradients_, direct_sync_;
  int shards_ = 0, cores_ = 1, ranks_on_host_ = 1;
};

}  // namespace lockstep
