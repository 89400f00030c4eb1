// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "model/metrics/entries.h"

namespace lockstep {

std::span<const MetricEntry> metric_table() {
  static const std::array table = {
      // clang-format off
      kAccuracyMetric,
      kTopKMetric,
      kSubsetAccuracyMetric,
      kHammingLossMetric,
      kPrecisionMetric,
      kRecallMetric,
      kF1Metric,
      kAucRocMetric,
      kAucPrMetric,
      kConfusionMatrixMetric,
      kMeanIouMetric,
      kMeanPerClassAccuracyMetric,
      kPrecisionAtKMetric,
      kRecallAtKMetric,
      kAveragePrecisionAtKMetric,
      kMeanAbsoluteErrorMetric,
      kMeanSquaredErrorMetric,
      kRootMeanSquaredErrorMetric,
      kMeanRelativeErrorMetric,
      kR2Metric,
      kMeanCosineDistanceMetric,
      kPerplexityMetric,
      kMeanMetric,
      kPercentageBelowMetric,
      // clang-format on
  };
  return table;
}

}  // namespace lockstep
