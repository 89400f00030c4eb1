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

#include "data/reader_options.h"

namespace lockstep {

struct SequenceOptions {
  enum class Truncate { none, back, front };
  std::optional<std::int64_t> pad_to;
  std::vector<std::int64_t> step_shape;
  float pad_value = 0;
  Truncate truncate{};
  std::int64_t min_length = 1;
  bool lengths = false;
};
/// None: null. For option_as().
std::vector<std::int64_t> extents_or_none(const Params& params, const ParamSpec& option);
inline constexpr std::array kSequenceOptions{
    option<&SequenceOptions::pad_to>(
        "pad_to", "null", between(1, 1e6, "steps").or_null(),
        "records hold sequences of different lengths, which are padded at the end to so many steps; "
        "null: all have the same shape"),
    option_as<extents_or_none, &SequenceOptions::step_shape>(
        ParamType::integers, "step_shape", "null", between(1, 1e9),
        "with pad_to, the shape of one step, where a record is a flat list of numbers; null: one number"),
    option<&SequenceOptions::pad_value>(
        "pad_value", "0", between(-1e30, 1e30),
        "with pad_to, the value of padding, after scale, offset, mean and std"),
    option<&SequenceOptions::truncate>(
        "truncate", "none", one_of("none|back|front"),
        "which part of a sequence longer than pad_to is removed: its end or its beginning; none: it is "
        "an error"),
    option<&SequenceOptions::min_length>("min_length", "1", between(0, 1e6, "steps"),
                                         "with pad_to, a shorter sequence is an error; 0 allows empty ones"),
    option<&SequenceOptions::lengths>(
        "lengths", "false", {},
        "with pad_to, samples are the lengths of the sequences, one number each: an input for layers "
        "that take lengths")};

/// Empty sequences do not tell the form of a step: a reader looks for one that is not among the first
/// kFirstRecords.
inline constexpr std::int64_t kFirstRecords = 1000;

/// The options of a reader with those above.
template <std::size_t kCount>
constexpr auto with_sequence_options(const std::array<ParamSpec, kCount>& own) {
  return joined_options(own, kSequenceOptions);
}

class SequenceRows {
 public:
  /// Reads the options; nothing without pad_to. Throws Error(config) for options that do not fit together.
  static std::optional<SequenceRows> from(const Params& params);

  /// The extents of one step; none: one value. Sets shape, type and form of the samples.
  void set_step(std::span<const std::int64_t> extents, DatasetParts& parts);
  /// Sets the form of a step by the option step_shape.
  void set_step(DatasetParts& parts) { set_step(options_.step_shape, parts); }
  std::int64_t step_values() const { return step_values_; }
  /// The number of values of a sample.
  std::int64_t sample_values() const { return options_.lengths ? 1 : steps_ * step_values_; }

  /// Writes the sequence of `values`, in the field `name`, as a sample. Throws Error(data) without a place if
  /// it is too long, too short, not of whole steps, or has a value that is not finite.
  void write(std::span<const float> values, std::string_view name, void* sample) const;

 private:
  explicit SequenceRows(SequenceOptions options) : options_(std::move(options)), steps_(*options_.pad_to) {}

  SequenceOptions options_;
  std::int64_t steps_, step_values_ = 1;
};

/// Adds `count` values of a type at `from`, which is aligned, to `to`.
void append_as_floats(DType type, const void* from, std::int64_t count, std::vector<float>& to);

}  // namespace lockstep
