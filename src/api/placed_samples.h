// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples of the program as a data set takes them: where they lie, what they look like, and the memory of
// what had to be converted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/input.h"
#include "data/dataset_parts.h"

namespace lockstep {

struct PlacedSamples {
  StoredForm form;
  SampleValues at;
  std::shared_ptr<const void> owner = nullptr;  ///< of what lies elsewhere
  std::vector<float> features = {};             ///< those that a function has filled in
  std::vector<std::int32_t> classes = {};       ///< if the program's are of another type
  std::vector<float> targets = {};              ///< likewise
  /// The name of a sample in messages; none: "input train, sample 17".
  std::function<std::string(std::int64_t sample)> where = {};
};
using PlacedPointer = std::shared_ptr<const PlacedSamples>;

/// Of `samples` in place, with labels converted to int32 or float32 if they are not. `may_be_empty`: there
/// may be none. Throws Error(data).
PlacedPointer placed(const std::string& name, const MemorySamples& samples, bool may_be_empty = false);
/// Of vectors, which it keeps.
PlacedPointer placed(const std::string& name, SampleArrays samples, bool may_be_empty = false);
/// Computes all of them, if there are any. Throws Error(data); what the function throws is nested in it.
PlacedPointer placed(const std::string& name, const ComputedSamples& samples);

/// Throws Error(data) unless they have a size (above 0, if `may_be_empty` is not set), a shape and a
/// function.
void check_computed(const std::string& name, const ComputedSamples& samples, bool may_be_empty);
/// What they look like.
StoredForm form_of(const ComputedSamples& samples);
/// Calls ComputedSamples::fill for sample i. Throws Error(data) that names the sample, with what the function
/// threw nested in it, or the Error that it threw.
void fill_sample(const std::string& name, const ComputedSamples& samples, std::int64_t i, float* features,
                 std::int32_t* label, float* targets);

/// For the reader `program`. The values stay where they are.
DatasetParts parts_of(const PlacedPointer& samples);

}  // namespace lockstep
