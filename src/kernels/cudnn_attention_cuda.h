// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's attention in 16 bits, by its graph interface of backend descriptors (private to this room). A pass
// of one shape has one plan, chosen once per process; any lane executes it.
#pragma once

#include <cuda_runtime.h>

#include <compare>
#include <cstddef>
#include <memory>
#include <string>

#include "kernels/attention.h"

namespace lockstep::cuda {

/// One pass over attention without dropout and without lengths.
struct AttentionPlanSpec {
  enum class Pass { forward, backward } pass = Pass::forward;
  std::int64_t n = 0, heads = 0, head_size = 0, queries = 0, keys = 0;
  std::int64_t query_stride = 0, key_stride = 0;  ///< as in AttentionShape
  bool causal = false;
  DType type = DType::bf16;

  std::string describe() const;
  /// Elements of one statistic of all queries: n x heads x queries.
  std::int64_t rows() const { return n * heads * queries; }
  auto operator<=>(const AttentionPlanSpec&) const = default;
};

/// The addresses of an execution, in device memory and 16-byte aligned. Layouts are those of attention.h.
struct AttentionOperands {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  /// Forward writes it, backward reads it.
  const void *y = nullptr, *statistics = nullptr;
  /// Backward alone: read; written; scratch of rows() float32.
  const void *dy = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr, *delta = nullptr;
};

class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  /// `statistics` are the natural logarithms of the queries' sums of exponentials, n x heads x queries in
  /// float32. Thread-safe.
  virtual void run(cudaStream_t stream, const AttentionOperands& operands, void* workspace) const = 0;
};

/// The plan for this pass on the current device, created at the first request; null if cuDNN is too old, the
/// GPU is older than Hopper, or no engine qualifies. Thread-safe. Throws Error(device) for other failures.
std::shared_ptr<const AttentionPlan> attention_plan_for(const AttentionPlanSpec& spec);

}  // namespace lockstep::cuda
