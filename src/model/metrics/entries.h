// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The entries of the metrics, each defined in its metric's file; metric_table.cpp lists them.
#pragma once

#include "model/metric.h"

namespace lockstep {

extern const MetricEntry kAccuracyMetric;
extern const MetricEntry kTopKMetric;
extern const MetricEntry kSubsetAccuracyMetric;
extern const MetricEntry kHammingLossMetric;
extern const MetricEntry kPrecisionMetric;
extern const MetricEntry kRecallMetric;
extern const MetricEntry kF1Metric;
extern const MetricEntry kAucRocMetric;
extern const MetricEntry kAucPrMetric;
extern const MetricEntry kConfusionMatrixMetric;
extern const MetricEntry kMeanIouMetric;
extern const MetricEntry kMeanPerClassAccuracyMetric;
extern const MetricEntry kPrecisionAtKMetric;
extern const MetricEntry kRecallAtKMetric;
extern const MetricEntry kAveragePrecisionAtKMetric;
extern const MetricEntry kMeanAbsoluteErrorMetric;
extern const MetricEntry kMeanSquaredErrorMetric;
extern const MetricEntry kRootMeanSquaredErrorMetric;
extern const MetricEntry kMeanRelativeErrorMetric;
extern const MetricEntry kR2Metric;
extern const MetricEntry kMeanCosineDistanceMetric;
extern const MetricEntry kPerplexityMetric;
extern const MetricEntry kMeanMetric;
extern const MetricEntry kPercentageBelowMetric;

}  // namespace lockstep
