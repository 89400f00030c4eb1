// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a data set of sequences of different lengths does with their padding.
#include <algorithm>

#include "core/error.h"
#include "data/dataset.h"
#include "data/sample_stream.h"

namespace lockstep {

void Dataset::convert_padded(const void* sample, float* out) const {
  convert(sample, out);
  if (!parts_.sequence || !parts_.sequence->ends_in_nan()) return;
  const Shape& shape = parts_.feature_shape;
  const std::int64_t length =
      lockstep::sequence_length(*parts_.sequence, shape, parts_.feature_dtype, sample);
  std::fill(out + length * (elements_per_sample_ / shape[0]), out + elements_per_sample_,
            parts_.sequence->padding);
}

std::int64_t Dataset::sequence_length(std::int64_t sample) const {
  LOCKSTEP_CHECK(parts_.sequence.has_value());
  std::int64_t length = 0;
  const auto take = [&](const SampleValues& values) {
    length = lockstep::sequence_length(*parts_.sequence, parts_.feature_shape, parts_.feature_dtype,
                                       values.features);
  };
  if (stream_ == nullptr)
    take(values_at(sample));
  else
    stream_->with_sample(sample, take);
  return length;
}

}  // namespace lockstep
