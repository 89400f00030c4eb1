// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn_attention_cuda.h"

#include <map>
#include <mutex>

#include "core/error.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/cudnn_attention_plan_cuda.h"
#include "kernels/cudnn_handle_cuda.h"
#include "kernels/not_supported.h"

namespace lockstep::cuda {
namespace {

constexpr int kHopper = 9;  ///< major compute capability

class CudnnAttentionPlan final : public AttentionPlan {
 public:
  explicit CudnnAttentionPlan(const AttentionPlanSpec& spec)
      : spec_(spec),
        what_(spec.describe()),
        scalars_(spec),
        handle_(cudnn_handle()),
        found_(find(spec, handle_, what_)) {}

  std::string algorithm() const { return "cuDNN " + describe(found_); }

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(found_.workspace_bytes); }

  void run(cudaStream_t stream, const AttentionOperands& o, void* workspace) const override {
    for (const void* address : {o.q, o.k, o.v, o.y, o.statistics, o.dy, o.dq, o.dk, o.dv, o.delta})
      LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % kPlanAlignment == 0,
                     "{}: not aligned to {} bytes", what_, kPlanAlignment);
    const Descriptor pack = attention_variant_pack({spec_, o, scalars_}, workspace, what_);
    const std::lock_guard lock(handle_.mutex);
    check(cudnnSetStream(handle_.native, stream), "cudnnSetStream", what_);
    check(cudnnBackendExecute(handle_.native, found_.plan.native(), pack.native()), "cudnnBackendExecute",
          what_);
  }

 private:
  static FoundPlan find(const AttentionPlanSpec& spec, CudnnHandle& handle, const std::string& what) {
    const std::lock_guard lock(handle.mutex);
    return find_attention_plan(spec, {.handle = handle.native}, what);
  }

  AttentionPlanSpec spec_;
  std::string what_;
  AttentionScalars scalars_;
  CudnnHandle& handle_;
  FoundPlan found_;
};

/// A plan, or why there is none.
struct Choice {
  std::shared_ptr<const CudnnAttentionPlan> plan;
  std::string algorithm;
};

Choice choose(const AttentionPlanSpec& spec, int device) {
  if (cudnnGetVersion() < kLeastAttentionVersion) return {nullptr, "own kernels, cuDNN is too old"};
  int major = 0;
  cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "cudaDeviceGetAttribute");
  if (major < kHopper) return {nullptr, "own kernels, the GPU is older than Hopper"};
  try {
    auto plan = std::make_shared<const CudnnAttentionPlan>(spec);
    std::string algorithm = plan->algorithm();
    return {std::move(plan), std::move(algorithm)};
  } catch (const NotSupported&) {
    return {nullptr, "own kernels, cuDNN has no engine"};
  }
}

}  // namespace

std::shared_ptr<const AttentionPlan> attention_plan_for(const AttentionPlanSpec& spec) {
  static std::mutex mutex;
  // Never destroyed, since CUDA may be gone before static objects.
  static auto* choices = new std::map<std::pair<int, AttentionPlanSpec>, Choice>;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  auto found = choices->find({device, spec});
  if (found == choices->end()) found = choices->emplace(std::pair(device, spec), choose(spec, device)).first;
  note_algorithm(spec.describe(), found->second.algorithm);
  return found->second.plan;
}

}  // namespace lockstep::cuda
