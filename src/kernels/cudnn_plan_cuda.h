// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Selects the plan of a convolution, or of any graph (private to this room). cuDNN's heuristic lists engines
// in the order of expected speed; its fallback list adds the rest. An engine is skipped if, by cuDNN's notes,
// it is not deterministic, rounds inputs or partial sums, or uses Winograd or FFT (their errors are not those
// of a sum of products). In float32 without TF32, engines that use tensor cores are skipped too. The first
// remaining engine is chosen that accepts the operation, needs no more workspace than the larger of 512 MiB
// and twice its operands, and is accepted by the caller. Nothing is timed here, so every run on a machine
// gets the same list.
//
// If the target is a described device, no call here needs a GPU.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "kernels/cudnn_cuda.h"

namespace lockstep::cuda {

/// Throws Error(device) with the call's name, `what` and cuDNN's message unless `status` is success.
void check(cudnnStatus_t status, const char* call, const std::string& what);

/// True for a status that says that an engine does not support an operation on this device: the next one is
/// tried. False for success, and for failures that may be gone in the next run (a library that is not found
/// or not compatible, an allocation, a compilation): another engine would then give other bits.
bool is_unsupported(cudnnStatus_t status);

/// An owned backend descriptor. `what` is used in errors and must outlive it.
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
  /// Returns at most `most` values. Throws as check() does.
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

/// The device that a plan is for: the GPU of a handle, or a device that a finalized device property
/// descriptor describes. A described device need not exist; a plan for it cannot be executed. Exactly one of
/// the two is null.
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

struct FoundPlan {
  Descriptor plan, engine;
  std::int64_t workspace_bytes = 0;
  bool on_tensor_cores = false;
  std::string knobs;  ///< ", knob 2 = 1, knob 7 = 3": how the engine is set; empty: it has nothing to set
};

/// "engine 34, knob 2 = 1, 1024 bytes of workspace". It tells a plan from all others for the same operation,
/// library and GPU.
std::string describe(const FoundPlan& plan);

/// Identifiers of the operands in a plan and in its variant pack.
inline constexpr std::int64_t kPlanX = 1, kPlanKernel = 2, kPlanY = 3;
/// Alignment in bytes of every operand's address.
inline constexpr std::int64_t kPlanAlignment = 16;

/// The finalized graph of these operations.
Descriptor graph_of(const std::vector<cudnnBackendDescriptor_t>& operations, const PlanTarget& target,
                    const std::string& what);

/// Selects the plan of a graph, whose engines may use tensor cores and at most this much workspace, as
/// find_plan() does.
FoundPlan choose_plan(const Descriptor& graph, const PlanTarget& target, bool tensor_cores,
                      std::int64_t most_workspace, const std::string& what,
                      FunctionRef<bool(const FoundPlan& plan)> is_right);

/// cuDNN's name of a type of activations.
cudnnDataType_t cudnn_type(DType type);

/// Selects the plan. `what` names the operation in errors and must outlive the result. `is_right` is asked
/// about plans in order until it accepts one. Throws NotSupported if no engine qualifies. cuDNN allows one
/// thread at a time per handle.
FoundPlan find_plan(const PlanSpec& spec, const PlanTarget& target, const std::string& what,
                    FunctionRef<bool(const FoundPlan& plan)> is_right);

/// The variant pack for an execution of a plan: addresses in device memory.
Descriptor variant_pack(const void* x, const void* kernel, const void* y, void* workspace,
                        const std::string& what);

}  // namespace lockstep::cuda
