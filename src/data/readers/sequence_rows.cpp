// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/sequence_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/as_float.h"

namespace lockstep {

namespace {

[[noreturn]] void fail(std::string what, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), {}, std::move(advice));
}

}  // namespace

std::optional<SequenceRows> SequenceRows::from(const Params& params) {
  const auto steps = params.optional_integer("pad_to");
  if (!steps) {
    for (const ParamSpec& option : kSequenceOptions)
      if (option.name != "pad_to" && params.given(option.name))
        throw params.error(option.name, "is about sequences of different lengths, but pad_to is not given",
                           "Give pad_to, the largest number of steps, or leave it out.");
    return std::nullopt;
  }
  SequenceRows rows;
  rows.steps_ = *steps;
  rows.padding_ = static_cast<float>(params.real("pad_value"));
  rows.truncates_ = params.string("truncate") != "none";
  rows.keeps_end_ = params.string("truncate") == "front";
  rows.min_length_ = params.integer("min_length");
  rows.lengths_ = params.boolean("lengths");
  if (rows.min_length_ > rows.steps_)
    throw params.error("min_length", fmt::format("is {}, more than pad_to ({})", rows.min_length_, *steps),
                       "No sequence could be used.");
  const auto check_plain = [&](const char* option, bool plain) {
    if (!plain)
      throw params.error(option, "is given with lengths: true, where samples are whole numbers of steps",
                         "Write it in the inputs that have the values.");
  };
  if (rows.lengths_) {
    check_plain("scale", params.real("scale") == 1);
    check_plain("offset", params.real("offset") == 0);
    check_plain("mean", !params.has("mean"));
    check_plain("std", !params.has("std"));
    check_plain("normalize", params.string("normalize") == "none");
  }
  return rows;
}

void SequenceRows::set_step(std::span<const std::int64_t> extents, DatasetParts& parts) {
  std::vector<std::int64_t> all{steps_};
  step_values_ = 1;
  for (const std::int64_t extent : extents) {
    all.push_back(extent);
    if (extent < 1 || step_values_ > std::numeric_limits<std::int64_t>::max() / 8 / steps_ / extent)
      fail(fmt::format("a step with an extent of {} is not possible", extent),
           "Check the option step_shape.");
    step_values_ *= extent;
  }
  if (std::ssize(all) > Shape::kMaxRank)
    fail(fmt::format("samples with {} axes are not supported", all.size()), "Use fewer axes.");
  parts.feature_dtype = DType::f32;
  if (lengths_) {
    parts.feature_shape = {1};
    return;
  }
  parts.feature_shape = Shape(std::span<const std::int64_t>(all));
  parts.sequence = {.mark = SequenceForm::Mark::nan, .padding = padding_};
}

void SequenceRows::set_step(const Params& params, DatasetParts& parts) {
  set_step(params.has("step_shape") ? params.integers("step_shape") : std::vector<std::int64_t>{}, parts);
}

void SequenceRows::write(std::span<const float> values, std::string_view name, void* sample) const {
  const std::int64_t length = std::ssize(values) / step_values_;
  if (length * step_values_ != std::ssize(values))
    fail(fmt::format("'{}' has {} values, which are no whole steps of {}", name, values.size(), step_values_),
         "Check the option step_shape.");
  if (length > steps_ && !truncates_)
    fail(fmt::format("'{}' has {} steps, more than pad_to ({})", name, length, steps_),
         "Raise pad_to, or write truncate: back or front.");
  if (length < min_length_)
    fail(length == 0
             ? fmt::format("'{}' is an empty sequence", name)
             : fmt::format("'{}' has {} steps, fewer than min_length ({})", name, length, min_length_),
         length == 0 ? "Remove it, or write min_length: 0." : "Remove it, or lower min_length.");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      fail(fmt::format("'{}': value {} is not a finite number", name, i),
           "Remove or repair the record; NaN and Inf cannot be trained on.");
  float* const out = static_cast<float*>(sample);
  const std::int64_t kept = std::min(length, steps_);
  if (lengths_) {
    *out = static_cast<float>(kept);
    return;
  }
  const auto first = values.begin() + (keeps_end_ ? (length - kept) * step_values_ : 0);
  float* const end = std::copy_n(first, kept * step_values_, out);
  std::fill(end, out + steps_ * step_values_, std::numeric_limits<float>::quiet_NaN());
}

namespace {

template <typename T>
void append(const void* from, std::int64_t count, std::vector<float>& to) {
  const T* const values = static_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i) to.push_back(as_float(values[i]));
}

}  // namespace

void append_as_floats(DType type, const void* from, std::int64_t count, std::vector<float>& to) {
  switch (type) {
    case DType::u8:
      return append<std::uint8_t>(from, count, to);
    case DType::i8:
      return append<std::int8_t>(from, count, to);
    case DType::u16:
      return append<std::uint16_t>(from, count, to);
    case DType::i16:
      return append<std::int16_t>(from, count, to);
    case DType::i32:
      return append<std::int32_t>(from, count, to);
    case DType::i64:
      return append<std::int64_t>(from, count, to);
    case DType::f32:
      return append<float>(from, count, to);
    case DType::f64:
      return append<double>(from, count, to);
    case DType::bf16:
      return append<BFloat16>(from, count, to);
    case DType::f16:
      return append<Float16>(from, count, to);
  }
}

}  // namespace lockstep
