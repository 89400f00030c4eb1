// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/program.h"
#ifdef LOCKSTEP_WITH_CUDA
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#endif
#ifdef LOCKSTEP_WITH_NCCL
#include "comm/nccl_communicator.h"
#endif

int main(int argc, char** argv) {
#ifdef LOCKSTEP_WITH_CUDA
  lockstep::register_backend(lockstep::cuda_backend());
#endif
#ifdef LOCKSTEP_WITH_NCCL
  lockstep::register_device_communicator(lockstep::make_nccl_communicator);
#endif
  return lockstep::run_program(argc, argv);
}
