// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How long the sequences of a data set are, and how much of its batches is padding. For `lockstep data` and
// `lockstep check`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/reader_dataset.h"
#include "data/step_plan.h"

namespace lockstep {

/// Lines about the lengths of these samples, with a histogram; none if they are no sequences.
std::vector<std::string> length_lines(const ReaderDataset& data, std::span<const std::int64_t> samples);

/// A line about the buckets of a plan that has them: how many steps up to the longest sequence of each
/// microshard are padding, in the first batches with and without the buckets.
std::string bucket_line(const StepPlan& plan);

}  // namespace lockstep
