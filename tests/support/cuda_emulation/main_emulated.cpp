// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole program on emulated GPUs: `device: cuda` works, and missing waits are detected.
#include "comm/nccl_communicator.h"
#include "driver/program.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"

int main(int argc, char** argv) {
  lockstep::register_backend(lockstep::cuda_backend());
  lockstep::register_device_communicator(lockstep::make_nccl_communicator);
  return lockstep::run_program(argc, argv);
}
