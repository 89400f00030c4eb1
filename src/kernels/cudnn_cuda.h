// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's graph interface (its backend descriptors) behind the GPU's convolutions (private to this room): one
// operation becomes a plan, chosen once per operation and process, which any lane executes.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::cuda {

/// A convolution with symmetric padding, channels last, float32; the kernel is out x kernel_h x kernel_w x
/// in/groups.
struct PlanSpec {
  enum class Pass { forward, backward_data, backward_weights } pass = Pass::forward;
  std::int64_t n = 0, in_h = 0, in_w = 0, in_c = 0, out_h = 0, out_w = 0, out_c = 0, kernel_h = 0,
               kernel_w = 0;
  std::int64_t pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, groups = 1;
  bool tf32 = false;
  std::string describe() const;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  /// x, kernel, y in device memory, 16-byte aligned; the pass decides which of them is written. Thread-safe.
  virtual void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
                   void* workspace) const = 0;
};

/// The plan for this operation on the current device; made when first asked for. Thread-safe. Throws
/// Error(device) that names the call and the operation.
std::shared_ptr<const Plan> plan_for(const PlanSpec& spec);

}  // namespace lockstep::cuda
