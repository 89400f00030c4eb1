// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

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

#define LOCKSTEP_DECLARE(entry) extern const MetricEntry entry;
LOCKSTEP_METRICS(LOCKSTEP_DECLARE)
#undef LOCKSTEP_DECLARE

namespace {
std::vector<MetricEntry>& entries() {
#define LOCKSTEP_LIST(entry) entry,
  static std::vector<MetricEntry> table = {LOCKSTEP_METRICS(LOCKSTEP_LIST)};
#undef LOCKSTEP_LIST
  return table;
}
}  // namespace

std::span<const MetricEntry> metric_table() { return entries(); }

void register_metric(const MetricEntry& entry) {
  for (const MetricEntry& known : entries())
    LOCKSTEP_REQUIRE(known.name != entry.name, ErrorKind::config, "a metric named '{}' exists already",
                     entry.name);
  entries().push_back(entry);
}

}  // namespace lockstep
