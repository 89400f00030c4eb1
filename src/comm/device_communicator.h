// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups whose messages go from one device's memory to another's: Communicators whose data lie on a device
// and whose calls only put work into a stream. Who builds a program with such a library registers how to make
// one (src/main.cpp).
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "core/device.h"

namespace lockstep {

/// A Communicator in which `what` is done in the order of stream(), after the call has returned. A failure
/// shows in check(), or in a later call.
class DeviceCommunicator : public Communicator {
 public:
  using Communicator::Communicator;
  virtual void* stream() const = 0;
  /// Throws Error(communication) if the library has seen an error since the last time. Cheap.
  virtual void check() = 0;
};

/// All ranks of `bootstrap`, which is used once. Each rank must have a device of its own.
using MakeDeviceCommunicator = std::unique_ptr<DeviceCommunicator> (*)(Communicator& bootstrap,
                                                                       Device& device, void* stream,
                                                                       std::string name);
void register_device_communicator(MakeDeviceCommunicator make);
/// Null if this program has none.
MakeDeviceCommunicator device_communicator();

}  // namespace lockstep
