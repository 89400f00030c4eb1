// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/metric.h"

namespace lockstep {

// Lockstep's metrics, one per line. Each entry is defined in its file in metrics/.
#define LOCKSTEP_METRICS(METRIC)      \
  METRIC(kAccuracyMetric)             \
  METRIC(kTopKMetric)                 \
  METRIC(kSubsetAccuracyMetric)       \
  METRIC(kHammingLossMetric)          \
  METRIC(kPrecisionMetric)            \
  METRIC(kRecallMetric)               \
  METRIC(kF1Metric)                   \
  METRIC(kAucRocMetric)               \
  METRIC(kAucPrMetric)                \
  METRIC(kConfusionMatrixMetric)      \
  METRIC(kMeanIouMetric)              \
  METRIC(kMeanPerClassAccuracyMetric) \
  METRIC(kPrecisionAtKMetric)         \
  METRIC(kRecallAtKMetric)            \
  METRIC(kAveragePrecisionAtKMetric)  \
  METRIC(kMeanAbsoluteErrorMetric)    \
  METRIC(kMeanSquaredErrorMetric)     \
  METRIC(kRootMeanSquaredErrorMetric) \
  METRIC(kMeanRelativeErrorMetric)    \
  METRIC(kR2Metric)                   \
  METRIC(kMeanCosineDistanceMetric)   \
  METRIC(kPerplexityMetric)           \
  METRIC(kMeanMetric)                 \
  METRIC(kPercentageBelowMetric)

LOCKSTEP_TABLE(MetricEntry, metric_table, "metric", LOCKSTEP_METRICS)

}  // namespace lockstep
