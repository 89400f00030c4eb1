// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A DeviceCommunicator over an MPI library that sends and receives device memory itself ("CUDA-aware"), for
// ranks that NCCL does not connect: those that share a GPU, and builds without NCCL. Nothing is copied to
// host memory by Lockstep.
//
// MPI knows nothing of streams: a call first waits until the stream is done, and returns when its messages
// have arrived. So it blocks, and GradientReducer may give it a thread.
#pragma once

#include <memory>
#include <string>

#include "comm/device_communicator.h"

namespace lockstep {

/// Whether the MPI library of this process says that it takes device memory (MPIX_Query_cuda_support()). A
/// library without that function says no.
bool mpi_takes_device_memory();

/// `group` is duplicated. All ranks. connect() sends device memory and throws Error(config) if it does not
/// arrive.
std::unique_ptr<DeviceCommunicator> make_mpi_device_communicator(Communicator& group, Device& device,
                                                                 void* stream, std::string name);

}  // namespace lockstep
