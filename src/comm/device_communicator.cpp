// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/device_communicator.h"

namespace lockstep {

namespace {
MakeDeviceCommunicator registered = nullptr;
}  // namespace

void register_device_communicator(MakeDeviceCommunicator make) { registered = make; }
MakeDeviceCommunicator device_communicator() { return registered; }

}  // namespace lockstep
