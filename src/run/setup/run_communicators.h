// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The communicators of a run: a duplicate of the world for each purpose, and groups of GPUs.
#pragma once

#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "comm/device_communicator.h"
#include "run/sections/config.h"
#include "run/setup/rank_place.h"
#include "train/workers.h"

namespace lockstep {

class RunCommunicators {
 public:
  /// All ranks.
  explicit RunCommunicators(Communicator& world);
  RunCommunicators(const RunCommunicators&) = delete;
  RunCommunicators& operator=(const RunCommunicators&) = delete;

  /// Connects the GPUs of the ranks, if there are several. All ranks. Throws SharedError.
  void connect_devices(Communicator& world, const Config& config, const RankPlace& place, Workers& workers,
                       int shards);

  Communicator& gradients() { return *gradients_; }
  Communicator& batch_norm() { return *batch_norm_; }
  Communicator& control() { return *control_; }
  /// The communicator between GPUs, on a separate stream; null where gradients pass through the host.
  std::shared_ptr<DeviceCommunicator> direct_gradients() const { return direct_gradients_; }
  /// Null where batch norm's statistics pass through the host.
  DeviceCommunicator* direct_batch_norm() { return direct_batch_norm_.get(); }

 private:
  void connect_by_mpi(Communicator& world, const Config& config, const RankPlace& place);

  std::unique_ptr<Communicator> gradients_, batch_norm_, control_;
  std::optional<DeviceStream> gradient_stream_;
  std::shared_ptr<DeviceCommunicator> direct_gradients_, direct_batch_norm_;
};

}  // namespace lockstep
