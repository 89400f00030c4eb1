// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn_cuda.h"

#include <map>
#include <mutex>

#include "core/error.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/cudnn_handle_cuda.h"
#include "kernels/cudnn_plan_cuda.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

class CudnnPlan final : public Plan {
 public:
  explicit CudnnPlan(const PlanSpec& spec)
      : what_(spec.describe()),
        handle_(cudnn_handle()),
        found_(find(spec, handle_, what_)),
        algorithm_(describe(found_)) {}

  void note() const { note_algorithm(what_, algorithm_); }

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(found_.workspace_bytes); }
  bool on_tensor_cores() const override { return found_.on_tensor_cores; }

  void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
           void* workspace) const override {
    const void* addresses[] = {x, kernel, y};
    for (const void* address : addresses)
      LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % kPlanAlignment == 0,
                     "{}: not aligned to {} bytes", what_, kPlanAlignment);
    const Descriptor pack = variant_pack(x, kernel, y, workspace, what_);
    const std::lock_guard lock(handle_.mutex);
    check(cudnnSetStream(handle_.native, stream), "cudnnSetStream", what_);
    check(cudnnBackendExecute(handle_.native, found_.plan.native(), pack.native()), "cudnnBackendExecute",
          what_);
  }

 private:
  static FoundPlan find(const PlanSpec& spec, CudnnHandle& handle, const std::string& what) {
    const std::lock_guard lock(handle.mutex);
    return find_plan(spec, {.handle = handle.native}, what);
  }

  std::string what_;
  CudnnHandle& handle_;
  FoundPlan found_;
  std::string algorithm_;
};

}  // namespace

CudnnHandle& cudnn_handle() {
  static std::mutex mutex;
  static auto* handles = new std::map<int, CudnnHandle>;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  CudnnHandle& found = (*handles)[device];
  if (found.native == nullptr) check(cudnnCreate(&found.native), "cudnnCreate", "the GPU");
  return found;
}

std::shared_ptr<const Plan> plan_for(const PlanSpec& spec) {
  static std::mutex mutex;
  // Never destroyed, since CUDA may be gone before static objects.
  static auto* plans = new std::map<std::pair<int, std::string>, std::shared_ptr<const CudnnPlan>>;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  std::shared_ptr<const CudnnPlan>& plan = (*plans)[{device, spec.describe()}];
  if (!plan) plan = std::make_shared<CudnnPlan>(spec);
  plan->note();
  return plan;
}

std::string convolution_library_version() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::cuda
