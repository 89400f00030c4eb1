// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Communicators between device memories: their data are in device memory, and their calls only add work to a
// stream. The library that implements them is optional. The code that links it registers a factory: with
// NCCL, the GPU module does so when it is loaded.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "core/device.h"

namespace lockstep {

/// A Communicator whose calls return at once; the transfer runs in the order of stream(). check() or a later
/// call reports a failure.
class DeviceCommunicator : public Communicator {
 public:
  using Communicator::Communicator;
  virtual void* stream() const = 0;
  /// Throws Error(communication) if the library has reported an error since the last call. Cheap.
  virtual void check() = 0;
};

/// Creates a communicator of the ranks of `bootstrap`, which is used only during the call. All ranks. Each
/// rank must have its own device.
using MakeDeviceCommunicator = std::unique_ptr<DeviceCommunicator> (*)(Communicator& bootstrap,
                                                                       Device& device, void* stream,
                                                                       std::string name);
void register_device_communicator(MakeDeviceCommunicator make);
/// The registered factory; null if there is none.
MakeDeviceCommunicator device_communicator();

}  // namespace lockstep
