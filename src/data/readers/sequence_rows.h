// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers: the option pad_to, with which records hold sequences of different lengths, and how
// these become samples of one shape: as float32, padded at the end (sequence_form.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "data/dataset_parts.h"

namespace lockstep {

inline constexpr std::array kSequenceOptions{
    ParamSpec{"pad_to", ParamType::integer, "null", between(1, 1e6, "steps").or_null(),
              "records hold sequences of different lengths, which are padded at the end to so many steps; "
              "null: all have the same shape"},
    ParamSpec{
        "step_shape", ParamType::integers, "null", between(1, 1e9),
        "with pad_to, the shape of one step, where a record is a flat list of numbers; null: one number"},
    ParamSpec{"pad_value", ParamType::real, "0", between(-1e30, 1e30),
              "with pad_to, the value of padding, after scale, offset, mean and std"},
    ParamSpec{"truncate", ParamType::string, "none", one_of("none|back|front"),
              "which part of a sequence longer than pad_to is removed: its end or its beginning; none: it is "
              "an error"},
    ParamSpec{"min_length", ParamType::integer, "1", between(0, 1e6, "steps"),
              "with pad_to, a shorter sequence is an error; 0 allows empty ones"},
    ParamSpec{"lengths",
              ParamType::boolean,
              "false",
              {},
              "with pad_to, samples are the lengths of the sequences, one number each: an input for layers "
              "that take lengths"}};

/// Empty sequences do not tell the form of a step: a reader looks for one that is not among the first
/// kFirstRecords.
inline constexpr std::int64_t kFirstRecords = 1000;

/// The options of a reader with those above.
template <std::size_t Count>
constexpr std::array<ParamSpec, Count + kSequenceOptions.size()> with_sequence_options(
    const std::array<ParamSpec, Count>& own) {
  std::array<ParamSpec, Count + kSequenceOptions.size()> all{};
  std::copy(kSequenceOptions.begin(), kSequenceOptions.end(), std::copy(own.begin(), own.end(), all.begin()));
  return all;
}

class SequenceRows {
 public:
  /// Reads the options; nothing without pad_to. Throws Error(config) for options that do not fit together.
  static std::optional<SequenceRows> from(const Params& params);

  /// The extents of one step; none: one value. Sets shape, type and form of the samples.
  void set_step(std::span<const std::int64_t> extents, DatasetParts& parts);
  /// Sets the form of a step by the option step_shape.
  void set_step(const Params& params, DatasetParts& parts);
  std::int64_t step_values() const { return step_values_; }
  /// The number of values of a sample.
  std::int64_t sample_values() const { return lengths_ ? 1 : steps_ * step_values_; }

  /// Writes the sequence of `values`, in the field `name`, as a sample. Throws Error(data) without a place if
  /// it is too long, too short, not of whole steps, or has a value that is not finite.
  void write(std::span<const float> values, std::string_view name, void* sample) const;

 private:
  std::int64_t steps_ = 0, step_values_ = 1, min_length_ = 1;
  float padding_ = 0;
  bool truncates_ = false, keeps_end_ = false, lengths_ = false;
};

/// Adds `count` values of a type at `from`, which is aligned, to `to`.
void append_as_floats(DType type, const void* from, std::int64_t count, std::vector<float>& to);

}  // namespace lockstep
