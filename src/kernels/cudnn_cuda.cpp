// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn_cuda.h"

#include <map>
#include <mutex>
#include <tuple>

#include "core/error.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/cudnn_handle_cuda.h"
#include "kernels/cudnn_plan_cuda.h"
#include "kernels/factory_cuda.h"
#include "kernels/measured_algorithms_cuda.h"
#include "kernels/not_supported.h"
#include "kernels/plan_check_cuda.h"

namespace lockstep::cuda {
namespace {

/// The caller holds the handle's lock.
void execute(const CudnnHandle& handle, const FoundPlan& found, const std::string& what, cudaStream_t stream,
             const void* x, const void* kernel, const void* y, void* workspace) {
  const Descriptor pack = variant_pack(x, kernel, y, workspace, what);
  check(cudnnSetStream(handle.native, stream), "cudnnSetStream", what);
  check(cudnnBackendExecute(handle.native, found.plan.native(), pack.native()), "cudnnBackendExecute", what);
}

class CudnnPlan final : public Plan {
 public:
  /// `measured`: the plan with this name; empty: the first one that is right.
  CudnnPlan(const PlanSpec& spec, bool check, const std::string& measured)
      : what_(spec.describe()),
        handle_(cudnn_handle()),
        found_(find(spec, check, measured, handle_, what_)),
        algorithm_(describe(found_)) {}

  static void offer_all(const PlanSpec& spec, bool check, FastestAlgorithm& fastest) {
    const std::string what = spec.describe();
    CudnnHandle& handle = cudnn_handle();
    const std::lock_guard lock(handle.mutex);
    const auto offer = [&](const FoundPlan& found) {
      if (check && !is_right(spec, found, handle, what)) return false;
      return fastest.offer(describe(found), [&](double best) {
        return seconds_of_plan(
            spec, static_cast<std::size_t>(found.workspace_bytes), best,
            [&](cudaStream_t stream, const void* x, const void* kernel, const void* y, void* workspace) {
              execute(handle, found, what, stream, x, kernel, y, workspace);
            });
      });
    };
    try {
      find_plan(spec, {.handle = handle.native}, what, offer);
    } catch (const NotSupported&) {  // the list is at its end
    }
  }

  void note() const { note_algorithm(what_, algorithm_); }

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(found_.workspace_bytes); }
  bool on_tensor_cores() const override { return found_.on_tensor_cores; }

  void run(cudaStream_t stream, const void* x, const void* kernel, const void* y,
           void* workspace) const override {
    const void* addresses[] = {x, kernel, y};
    for (const void* address : addresses)
      LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % kPlanAlignment == 0,
                     "{}: not aligned to {} bytes", what_, kPlanAlignment);
    const std::lock_guard lock(handle_.mutex);
    execute(handle_, found_, what_, stream, x, kernel, y, workspace);
  }

 private:
  static FoundPlan find(const PlanSpec& spec, bool check, const std::string& measured, CudnnHandle& handle,
                        const std::string& what) {
    const std::lock_guard lock(handle.mutex);
    try {
      return find_plan(spec, {.handle = handle.native}, what, [&](const FoundPlan& found) {
        return (measured.empty() || describe(found) == measured) &&
               (!check || is_right(spec, found, handle, what));
      });
    } catch (const NotSupported& error) {
      if (measured.empty()) throw;
      throw_not_there(what, measured, error.what());
    }
  }
  /// Notes a plan that is not. The caller holds the handle's lock.
  static bool is_right(const PlanSpec& spec, const FoundPlan& found, const CudnnHandle& handle,
                       const std::string& what) {
    const PlanError error = error_of_plan(
        spec, static_cast<std::size_t>(found.workspace_bytes),
        [&](cudaStream_t stream, const void* x, const void* kernel, const void* y, void* workspace) {
          execute(handle, found, what, stream, x, kernel, y, workspace);
        });
    return cuda::is_right(convolution_library_version(), what, describe(found), error);
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

std::shared_ptr<const Plan> plan_for(const PlanSpec& spec, bool check) {
  static std::mutex mutex;
  // Never destroyed, since CUDA may be gone before static objects.
  using Key = std::tuple<int, bool, std::string, std::string>;
  static auto* plans = new std::map<Key, std::shared_ptr<const CudnnPlan>>;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  const std::string what = spec.describe(),
                    measured = measured_algorithm(
                        what, [&](FastestAlgorithm&fastest) { CudnnPlan::offer_all(spec, check, fastest); });
  std::shared_ptr<const CudnnPlan>& plan = (*plans)[{device, check, what, measured}];
  if (!plan) plan = std::make_shared<CudnnPlan>(spec, check, measured);
  plan->note();
  return plan;
}

std::string convolution_library_version() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::cuda
