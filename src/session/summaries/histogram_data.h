// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A measured distribution as a histogram of event files.
#pragma once

#include "io/summary_value.h"
#include "train/distribution_meter.h"

namespace lockstep {

/// The data as TensorFlow writes them: a run of empty buckets is one bucket with the last limit. `zeros`:
/// further numbers, all 0. NaN and infinities are in no bucket.
HistogramData histogram_data(const DistributionTotal& total, std::int64_t zeros = 0);

/// Appends the histogram under `tag`, and `tag`/not_finite, the number of NaN and infinities, if there are
/// any.
void append_histogram(std::vector<SummaryValue>& to, const std::string& tag, const DistributionTotal& total,
                      std::int64_t zeros = 0);

}  // namespace lockstep
