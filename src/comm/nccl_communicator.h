// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks with a GPU each, over NCCL. No CUDA header is needed to include this.
#pragma once

#include <memory>
#include <string>

#include "comm/device_communicator.h"

namespace lockstep {

/// For register_device_communicator(). Making it takes seconds on many ranks; it throws Error(communication)
/// if the others do not come in time.
std::unique_ptr<DeviceCommunicator> make_nccl_communicator(Communicator& bootstrap, Device& device,
                                                           void* stream, std::string name);
/// "NCCL 2.28.9".
std::string nccl_library_version();

}  // namespace lockstep
