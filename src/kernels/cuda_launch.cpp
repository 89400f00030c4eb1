// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_launch.h"

#include "core/error.h"
#include "kernels/cuda_device_limits.h"

namespace lockstep::cuda {

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) [[likely]]
    return;
  throw Error(
      ErrorKind::device,
      fmt::format("{} on the GPU failed: {} ({})", call, cudaGetErrorString(error), cudaGetErrorName(error)),
      {}, "the error may come from an earlier call; CUDA_LAUNCH_BLOCKING=1 finds the first");
}

namespace {
int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}
}  // namespace

std::size_t most_shared_bytes() {
  return static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}
int num_multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

void require(bool condition, const char* what) { LOCKSTEP_CHECK(condition, "{}", what); }

double* scratch_of(const Lane& lane) {
  LOCKSTEP_CHECK(lane.scratch_bytes >= kScratchBytes, "lane {} has {} bytes of scratch, needs {}", lane.index,
                 lane.scratch_bytes, kScratchBytes);
  return static_cast<double*>(lane.scratch);
}

}  // namespace lockstep::cuda
