// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// within, a metric that is not part of Lockstep: the share of predictions at most `distance` away from their
// labels.
#pragma once

#include <lockstep/eigen.h>
#include <lockstep/metric.h>

namespace example {

using namespace lockstep;

inline constexpr ParamSpec kWithinOptions[] = {{"distance", ParamType::real, "0.1", between(0, 1e30),
                                                "A prediction this far from its label counts as right."}};

class Within final : public Metric {
 public:
  Within(const Params& options, const MetricInput& input)
      : distance_(static_cast<float>(options.real("distance"))), width_(input.output.num_elements()) {}

  std::int64_t width() const override { return 2; }  // of the state: right ones, and all
  void add(const MetricBatch& batch, double* state) const override {
    const auto predictions = array(batch.predictions, batch.n, width_);
    const auto labels = array(batch.labels.rows, batch.n, width_);
    state[0] += static_cast<double>(((predictions - labels).abs() <= distance_).count());
    state[1] += static_cast<double>(batch.n * width_);
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    return {.value = totals[0] / totals[1], .tables = {}};
  }

 private:
  float distance_;
  std::int64_t width_;
};

inline const MetricEntry kWithin = {
    "within", "the share of predictions near their labels", kWithinOptions, true,
    [](const Params& options, const MetricInput& input) -> std::unique_ptr<Metric> {
      return std::make_unique<Within>(options, input);
    }};

}  // namespace example
