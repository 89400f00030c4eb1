// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cublaslt_cuda.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cublaslt_product_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/measured_algorithms_cuda.h"
#include "kernels/not_supported.h"
#include "kernels/plan_check_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr int kMostAlgorithms = 16;  ///< candidates of a shape: the first one without a defect is taken

/// The handle of the current device, created at the first request. It is never destroyed, since CUDA may be
/// gone before static objects.
cublasLtHandle_t handle() {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& found = handles[device];
  if (found == nullptr) check(cublasLtCreate(&found), "cublasLtCreate", "matrix products");
  return found;
}

class CublasLtProduct final : public Product {
 public:
  CublasLtProduct(const ProductShape& shape, int lanes, bool check)
      : shape_(shape), what_(shape.describe()), layouts_(layouts_of(shape)) {
    for (int lane = 0; lane < lanes; ++lane) operations_.push_back(operation_of(shape));
    choose_algorithm(check);
    note_algorithm(what_, describe(algorithm_.algo, what_));
  }

  std::size_t scratch_bytes() const override {
    return algorithm_.workspaceSize == 0 ? 0 : algorithm_.workspaceSize + kWorkspaceAlignment;
  }

  void run(const Lane& lane, const void* a, const void* b, const void* bias, void* d) const override {
    LOCKSTEP_CHECK(lane.index >= 0 && lane.index < static_cast<int>(operations_.size()), "lane {} of {}",
                   lane.index, operations_.size());
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    const auto addresses = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                           reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(bias);
    LOCKSTEP_CHECK(addresses % shape_.alignment == 0, "{}: an operand is not aligned to {} bytes", what_,
                   shape_.alignment);
    LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(bias) % shape_.bias_alignment() == 0,
                   "{}: the bias is not aligned to {} bytes", what_, shape_.bias_alignment());
    const cublasLtMatmulDesc_t operation = operations_[static_cast<std::size_t>(lane.index)].get();
    if (shape_.bias) bias_pointer(operation, bias, what_);
    const auto scratch = (reinterpret_cast<std::uintptr_t>(lane.scratch) + kWorkspaceAlignment - 1) /
                         kWorkspaceAlignment * kWorkspaceAlignment;
    multiply(algorithm_, operation, stream_of(lane), a, b, d, reinterpret_cast<void*>(scratch));
  }

 private:
  void multiply(const cublasLtMatmulHeuristicResult_t& with, cublasLtMatmulDesc_t operation,
                cudaStream_t stream, const void* a, const void* b, void* d, void* workspace) const {
    const float one = 1.0F, zero = 0.0F;
    check(cublasLtMatmul(handle(), operation, &one, a, layouts_.a.get(), b, layouts_.b.get(), &zero, d,
                         layouts_.d.get(), d, layouts_.d.get(), &with.algo,
                         with.workspaceSize == 0 ? nullptr : workspace, with.workspaceSize, stream),
          "cublasLtMatmul", what_);
  }

  /// Notes an algorithm that is not.
  bool is_right(const cublasLtMatmulHeuristicResult_t& with) const {
    const PlanError error =
        error_of_plan(shape_, with.workspaceSize,
                      [&](cudaStream_t stream, const void* a, const void* b, const void* bias, void* d,
                          void* workspace) { multiply_in_check(with, stream, a, b, bias, d, workspace); });
    return cuda::is_right(dense_library_version(), what_, describe(with.algo, what_), error);
  }

  void multiply_in_check(const cublasLtMatmulHeuristicResult_t& with, cudaStream_t stream, const void* a,
                         const void* b, const void* bias, void* d, void* workspace) const {
    const cublasLtMatmulDesc_t operation = operations_.front().get();
    if (shape_.bias) bias_pointer(operation, bias, what_);
    multiply(with, operation, stream, a, b, d, workspace);
  }

  /// The name of candidate `number`. Two may have the same settings.
  std::string name_of(const std::vector<cublasLtMatmulHeuristicResult_t>& all, std::size_t number) const {
    return fmt::format("number {} of the list: {}", number, describe(all[number].algo, what_));
  }

  void offer_all(const std::vector<cublasLtMatmulHeuristicResult_t>& all, bool check,
                 FastestAlgorithm& fastest) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (check && !is_right(all[i])) continue;
      const bool enough = fastest.offer(name_of(all, i), [&](double best) {
        return seconds_of_plan(
            shape_, all[i].workspaceSize, best,
            [&](cudaStream_t stream, const void* a, const void* b, const void* bias, void* d,
                void* workspace) { multiply_in_check(all[i], stream, a, b, bias, d, workspace); });
      });
      if (enough) return;
    }
  }

  cublasLtMatmulHeuristicResult_t candidate_named(const std::vector<cublasLtMatmulHeuristicResult_t>& all,
                                                  const std::string& name, bool check) const {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (name_of(all, i) == name && (!check || is_right(all[i]))) return all[i];
    throw_not_there(what_, name);
  }

  std::vector<cublasLtMatmulHeuristicResult_t> candidates() const {
    const auto preference = preference_of(shape_);
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle(), operations_.front().get(), layouts_.a.get(),
                                         layouts_.b.get(), layouts_.d.get(), layouts_.d.get(),
                                         preference.get(), kMostAlgorithms, found.data(), &count),
          "cublasLtMatmulAlgoGetHeuristic", what_);
    found.resize(static_cast<std::size_t>(count));
    std::erase_if(found, [](const auto& one) { return one.state == CUBLAS_STATUS_NOT_SUPPORTED; });
    for (const cublasLtMatmulHeuristicResult_t& one : found)
      check(one.state, "cublasLtMatmulAlgoGetHeuristic", what_);
    return found;
  }

  void choose_algorithm(bool check) {
    static std::mutex mutex;
    using Key = std::tuple<int, bool, std::string, decltype(shape_.key())>;
    static std::map<Key, cublasLtMatmulHeuristicResult_t> chosen;
    int device = 0;
    cuda::check(cudaGetDevice(&device), "cudaGetDevice");
    const std::lock_guard lock(mutex);
    const std::string measured = measured_algorithm(
        what_, [&](FastestAlgorithm& fastest) { offer_all(candidates(), check, fastest); });
    const Key key(device, check, measured, shape_.key());
    if (const auto found = chosen.find(key); found != chosen.end()) {
      algorithm_ = found->second;
      return;
    }
    const std::vector<cublasLtMatmulHeuristicResult_t> all = candidates();
    if (all.empty())
      throw NotSupported(ErrorKind::device,
                         fmt::format("cuBLAS has no deterministic algorithm for {}", what_));
    if (!measured.empty()) {
      algorithm_ = chosen[key] = candidate_named(all, measured, check);
      return;
    }
    const auto first =
        std::ranges::find_if(all, [&](const auto& candidate) { return !check || is_right(candidate); });
    if (first == all.end())
      throw NotSupported(
          ErrorKind::device,
          fmt::format("all {} algorithms of cuBLAS for {} compute wrongly", all.size(), what_), {},
          "Use another version of cuBLAS; gpu.check_plans=false takes algorithms without a check.");
    algorithm_ = *first;
    chosen[key] = algorithm_;
  }

  ProductShape shape_;
  std::string what_;
  ProductLayouts layouts_;
  std::vector<CublasLtOwner<cublasLtMatmulDescOpaque_t>>
      operations_;  ///< per lane, since it holds the bias's address
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

}  // namespace

std::unique_ptr<Product> make_product(const ProductShape& shape, int lanes, bool check) {
  return std::make_unique<CublasLtProduct>(shape, lanes, check);
}

std::string dense_library_version() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::cuda
