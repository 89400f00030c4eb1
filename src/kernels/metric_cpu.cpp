// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/metric.h"

#include <algorithm>
#include <cmath>

#include "kernels/factory_cpu.h"

namespace lockstep {
namespace {

std::int32_t index_of_largest(const float* row, std::int64_t classes) {
  std::int64_t best = -1;
  for (std::int64_t c = 0; c < classes; ++c)
    if (best < 0 ? row[c] == row[c] : row[c] > row[best]) best = c;
  return static_cast<std::int32_t>(best);
}

std::int32_t count_larger(const float* row, std::int64_t classes, float than) {
  std::int32_t larger = 0;
  bool finite = true;
  for (std::int64_t c = 0; c < classes; ++c) {
    finite = finite && std::isfinite(row[c]);
    larger += row[c] > than ? 1 : 0;
  }
  return finite ? larger : -1;
}

double cross_entropy(const float* row, std::int64_t classes, float of_label) {
  const auto largest = static_cast<double>(*std::max_element(row, row + classes));
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - largest);
  return std::log(sum) - (static_cast<double>(of_label) - largest);
}

class CpuMetric final : public MetricKernels {
 public:
  void class_scores(const Lane&, std::int64_t rows, std::int64_t classes, const float* x,
                    const std::int32_t* labels, unsigned parts, ClassScore* to) const override {
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* const row = x + i * classes;
      ClassScore score{};
      if ((parts & kLargestClass) != 0) score.largest = index_of_largest(row, classes);
      if (labels[i] >= 0 && labels[i] < classes) {
        score.of_label = row[labels[i]];
        if ((parts & kLabelRank) != 0) score.larger = count_larger(row, classes, score.of_label);
        if ((parts & kLabelCrossEntropy) != 0)
          score.cross_entropy = cross_entropy(row, classes, score.of_label);
      }
      to[i] = score;
    }
  }
};

}  // namespace

const MetricKernels& cpu_metric_kernels() {
  static const CpuMetric kernels;
  return kernels;
}

}  // namespace lockstep
