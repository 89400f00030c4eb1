// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Class scores on a GPU: a group of threads per row, in up to two passes over it. Sums are as in cuda_rows.h.
#include "kernels/metric.h"

#include "kernels/cuda_rows.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kNone =
    INT64_MAX;  // greater than every index, so that a real index with the same value wins

template <int kGroup>
__global__ void __launch_bounds__(kThreads)
    class_scores_kernel(std::int64_t rows, std::int64_t classes, const float* x, const std::int32_t* labels,
                        unsigned parts, ClassScore* to) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const float* const outputs = x + row * classes;
    const std::int32_t label = labels[row];
    const bool has_label = label >= 0 && label < classes;
    const float of_label = has_label ? outputs[label] : 0.0F;
    Maximum best{-INFINITY, kNone};
    double larger_than_label = 0.0, broken = 0.0;
    for (std::int64_t j = G::thread(); j < classes; j += kGroup) {
      const float output = outputs[j];
      if (const Maximum next{output, j}; larger(next, best)) best = next;
      larger_than_label += output > of_label ? 1.0 : 0.0;
      broken += std::isfinite(output) ? 0.0 : 1.0;
    }
    best = G::maximum(best);
    ClassScore score{};
    score.of_label = of_label;
    if ((parts & kLargestClass) != 0)
      score.largest = best.index == kNone ? -1 : static_cast<std::int32_t>(best.index);
    if ((parts & kLabelRank) != 0) {
      larger_than_label = G::sum(larger_than_label);
      broken = G::sum(broken);
      if (has_label) score.larger = broken > 0.0 ? -1 : static_cast<std::int32_t>(larger_than_label);
    }
    if ((parts & kLabelCrossEntropy) != 0) {
      const auto top = static_cast<double>(best.value);
      double sum = 0.0;
      for (std::int64_t j = G::thread(); j < classes; j += kGroup)
        sum += exp(static_cast<double>(outputs[j]) - top);
      sum = G::sum(sum);
      if (has_label) score.cross_entropy = log(sum) - (static_cast<double>(of_label) - top);
    }
    if (G::thread() == 0) to[row] = score;
  });
}

class CudaMetric final : public MetricKernels {
 public:
  void class_scores(const Lane& lane, std::int64_t rows, std::int64_t classes, const float* x,
                    const std::int32_t* labels, unsigned parts, ClassScore* to) const override {
    if (rows == 0) return;
    launch_rows(lane, "class_scores", rows, classes, kMaxBlocks, class_scores_kernel<kWarp>,
                class_scores_kernel<kThreads>, x, labels, parts, to);
  }
};

}  // namespace

const MetricKernels& metric_kernels() {
  static const CudaMetric kernels;
  return kernels;
}

}  // namespace lockstep::cuda
