// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the program calls in the GPU backend's shared object (run/setup/gpu_module.h).
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#ifdef LOCKSTEP_WITH_NCCL
#include "comm/nccl_communicator.h"
#endif

extern "C" const char* lockstep_gpu_module_build() { return LOCKSTEP_MODULE_BUILD; }

extern "C" void lockstep_gpu_module_register() {
  lockstep::register_backend(lockstep::cuda_backend());
#ifdef LOCKSTEP_WITH_NCCL
  lockstep::register_device_communicator(lockstep::make_nccl_communicator);
#endif
}
