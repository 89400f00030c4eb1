// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a plan for a convolution is chosen (private to this room): cuDNN's heuristic gives engines in the order
// of expected speed, its fallback list the rest. An engine is passed over if cuDNN notes that it is not
// deterministic, rounds inputs or partial sums, or computes by Winograd or FFT (whose errors are not those of
// a sum of products); in float32 without TF32 also if it uses tensor cores. The first that accepts the
// operation and wants no more workspace than 512 MiB, or twice its operands, is taken: nothing is timed, so
// every run of a machine takes the same.
//
// No call here needs a GPU if the target is a described one.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cudnn_cuda.h"

namespace lockstep::cuda {

/// Throws Error(device) with the call's name, `what` and cuDNN's own words unless `status` is success.
void check(cudnnStatus_t status, const char* call, const std::string& what);

/// An owned backend descriptor; `what`, which must outlive it, is for errors.
class Descriptor {
 public:
  Descriptor(cudnnBackendDescriptorType_t type, const std::string& what) : what_(&what) {
    check(cudnnBackendCreateDescriptor(type, &native_), "cudnnBackendCreateDescriptor", what);
  }
  ~Descriptor() {
    if (native_ != nullptr) cudnnBackendDestroyDescriptor(native_);
  }
  Descriptor(Descriptor&& other) noexcept
      : native_(std::exchange(other.native_, nullptr)), what_(other.what_) {}
  Descriptor& operator=(Descriptor&&) = delete;

  cudnnBackendDescriptor_t native() const { return native_; }

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
                  std::int64_t count) {
    check(cudnnBackendSetAttribute(native_, name, type, count, values), "cudnnBackendSetAttribute", *what_);
    return *this;
  }
  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, &value, 1);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, values.data(), static_cast<std::int64_t>(values.size()));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.native_);
  }
  Descriptor& finalize() {
    check(cudnnBackendFinalize(native_), "cudnnBackendFinalize", *what_);
    return *this;
  }
  /// At most `most` values. Throws as check() does.
  template <typename T>
  std::vector<T> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t most) const {
    std::vector<T> values(static_cast<std::size_t>(most));
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(native_, name, type, most, &count, values.data()),
          "cudnnBackendGetAttribute", *what_);
    values.resize(static_cast<std::size_t>(count < most ? count : most));
    return values;
  }

 private:
  cudnnBackendDescriptor_t native_ = nullptr;
  const std::string* what_;
};

/// Where a plan is to run: on the GPU of a handle, or on one that a finalized device property descriptor
/// describes and that need not be there (such a plan cannot be executed here). One of the two is null.
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

struct FoundPlan {
  Descriptor plan, engine;
  std::int64_t workspace_bytes = 0;
};

/// Names of the operands in a plan and in what it is executed with.
inline constexpr std::int64_t kPlanX = 1, kPlanKernel = 2, kPlanY = 3;
/// What every operand's address is a multiple of.
inline constexpr std::int64_t kPlanAlignment = 16;

/// The plan that is chosen; `what` names the operation in errors and must outlive the result. Throws
/// Error(device) where there is none. cuDNN allows one thread at a time per handle.
FoundPlan find_plan(const PlanSpec& spec, const PlanTarget& target, const std::string& what);

/// What a plan is executed with: addresses in device memory.
Descriptor variant_pack(const void* x, const void* kernel, const void* y, void* workspace,
                        const std::string& what);

}  // namespace lockstep::cuda
