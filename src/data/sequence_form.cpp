// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sequence_form.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/reader_dataset.h"

namespace lockstep {

namespace {

/// Up to the last value that is not the padding.
template <typename T>
std::int64_t length_of_ids(const SequenceForm& form, const void* sample, std::int64_t steps) {
  const T* const ids = static_cast<const T*>(sample);
  const auto padding = static_cast<T>(form.padding);
  while (steps > 0 && ids[steps - 1] == padding) --steps;
  return steps;
}

}  // namespace

std::int64_t sequence_length(const SequenceForm& form, const Shape& shape, DType type, const void* sample) {
  const std::int64_t steps = shape[0];
  if (form.mark == SequenceForm::Mark::nan) {
    LOCKSTEP_CHECK(type == DType::f32);
    const float* const values = static_cast<const float*>(sample);
    const std::int64_t step_values = shape.num_elements() / steps;
    std::int64_t first = 0, last = steps;  // of the steps that may be the first one of padding
    while (first < last) {
      const std::int64_t middle = first + (last - first) / 2;
      if (std::isnan(values[middle * step_values]))
        last = middle;
      else
        first = middle + 1;
    }
    return first;
  }
  switch (type) {
    case DType::u8:
      return length_of_ids<std::uint8_t>(form, sample, steps);
    case DType::u16:
      return length_of_ids<std::uint16_t>(form, sample, steps);
    case DType::i32:
      return length_of_ids<std::int32_t>(form, sample, steps);
    default:
      LOCKSTEP_CHECK(false, "token ids of type {}", name_of(type));
  }
}

std::vector<std::int32_t> sequence_lengths(const Dataset& data) {
  const std::vector<DatasetPart> inputs = data.inputs();
  const auto found = std::ranges::find_if(
      inputs, [](const DatasetPart& input) { return input.data->sequence() != nullptr; });
  if (found == inputs.end())
    throw Error(ErrorKind::data, "its samples are no sequences of different lengths", data.where(0),
                "Leave out length_buckets, or let the reader pad sequences with the option pad_to.");
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(data.size()));
  for (std::int64_t i = 0; i < data.size(); ++i)
    lengths[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(found->data->sequence_length(i));
  return lengths;
}

}  // namespace lockstep
