// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// DeviceCommunicator over NCCL, for ranks with one GPU each. Including this header needs no CUDA header.
#pragma once

#include <memory>
#include <string>

#include "comm/device_communicator.h"

namespace lockstep {

/// The factory for register_device_communicator(). Initialisation takes seconds on many ranks. Throws
/// Error(communication) if the other ranks do not join in time.
std::unique_ptr<DeviceCommunicator> make_nccl_communicator(Communicator& bootstrap, Device& device,
                                                           void* stream, std::string name);
/// The library's version: "NCCL 2.28.9".
std::string nccl_library_version();

}  // namespace lockstep
