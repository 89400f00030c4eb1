// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's handle of a device, for all plans (private to this room).
#pragma once

#include <cudnn.h>

#include <mutex>

namespace lockstep::cuda {

/// A handle and its lock: cuDNN allows one thread at a time.
struct CudnnHandle {
  cudnnHandle_t native = nullptr;
  std::mutex mutex;
};

/// The handle of the current device, created at the first request and never destroyed, since CUDA may be gone
/// before static objects. Thread-safe.
CudnnHandle& cudnn_handle();

}  // namespace lockstep::cuda
