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
  auto written = params.as<SequenceOptions>();
  if (!written.pad_to) {
    for (const ParamSpec& option : kSequenceOptions)
      if (option.name != "pad_to" && params.given(option.name))
        throw params.error(option.name, "is about sequences of different lengths, but pad_to is not given",
                           "Give pad_to, the largest number of steps, or leave it out.");
    return std::nullopt;
  }
  if (written.min_length > *written.pad_to)
    throw params.error(option_name<&SequenceOptions::min_length>(params),
                       fmt::format("is {}, more than pad_to ({})", written.min_length, *written.pad_to),
                       "No sequence could be used.");
  const auto check_plain = [&](const char* option, bool plain) {
    if (!plain)
      throw params.error(option, "is given with lengths: true, where samples are whole numbers of steps",
                         "Write it in the inputs that have the values.");
  };
  if (written.lengths) {
    const auto values = params.as<FeatureTransform>();
    check_plain("scale", values.scale == 1);
    check_plain("offset", values.offset == 0);
    check_plain("mean", values.mean.empty());
    check_plain("std", values.std.empty());
    check_plain("normalize", values.normalize == NormalizeBy::none);
  }
  return SequenceRows(std::move(written));
}

std::vector<std::int64_t> extents_or_none(const Params& params, const ParamSpec& option) {
  return params.has(option.name) ? params.integers(option.name) : std::vector<std::int64_t>{};
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
  if (options_.lengths) {
    parts.feature_shape = {1};
    return;
  }
  parts.feature_shape = Shape(std::span<const std::int64_t>(all));
  parts.sequence = {.mark = SequenceForm::Mark::nan, .padding = options_.pad_value};
}

void SequenceRows::write(std::span<const float> values, std::string_view name, void* sample) const {
  const std::int64_t length = std::ssize(values) / step_values_;
  if (length * step_values_ != std::ssize(values))
    fail(fmt::format("'{}' has {} values, which are no whole steps of {}", name, values.size(), step_values_),
         "Check the option step_shape.");
  if (length > steps_ && options_.truncate == SequenceOptions::Truncate::none)
    fail(fmt::format("'{}' has {} steps, more than pad_to ({})", name, length, steps_),
         "Raise pad_to, or write truncate: back or front.");
  if (length < options_.min_length)
    fail(length == 0 ? fmt::format("'{}' is an empty sequence", name)
                     : fmt::format("'{}' has {} steps, fewer than min_length ({})", name, length,
                                   options_.min_length),
         length == 0 ? "Remove it, or write min_length: 0." : "Remove it, or lower min_length.");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      fail(fmt::format("'{}': value {} is not a finite number", name, i),
           "Remove or repair the record; NaN and Inf cannot be trained on.");
  float* const out = static_cast<float*>(sample);
  const std::int64_t kept = std::min(length, steps_);
  if (options_.lengths) {
    *out = static_cast<float>(kept);
    return;
  }
  const auto first =
      values.begin() +
      (options_.truncate == SequenceOptions::Truncate::front ? (length - kept) * step_values_ : 0);
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
