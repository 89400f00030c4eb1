// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN plans for the GPU's convolutions, by its graph interface of backend descriptors (private to this
// room). One operation has one plan, chosen and checked once per process; any lane executes it.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/dtype.h"

namespace lockstep::cuda {

/// A convolution, channels last, with float32 sums. The kernel is out x kernel x
/// in/groups. Axes are in the order depth, height, width; with two spatial axes every depth is 1.
struct PlanSpec {
  enum class Pass { forward, backward_data, backward_weights } pass = Pass::forward;
  using Axes = std::array<std::int64_t, 3>;
  int spatial_axes = 2;
  std::int64_t n = 0, in_c = 0, out_c = 0, groups = 1;
  Axes in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, padding{0, 0, 0}, padding_after{0, 0, 0}, stride{1, 1, 1},
      dilation{1, 1, 1};
  bool tf32 = false;
  DType type = DType::f32;  ///< of all operands
  std::string describe() const;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual bool on_tensor_cores() const = 0;
  /// x, kernel and y are in device memory, 16-byte aligned. The pass determines which of them is written.
  /// Thread-safe.
  virtual void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
                   void* workspace) const = 0;
};

/// The plan for this operation on the current device, created at the first request. `check`: the first one
/// that computes rightly (plan_check_cuda.h); the others are noted. Thread-safe. Throws NotSupported, or
/// Error(device) for other failures, that names the call and the operation.
std::shared_ptr<const Plan> plan_for(const PlanSpec& spec, bool check);

}  // namespace lockstep::cuda
