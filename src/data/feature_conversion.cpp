// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/feature_conversion.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/as_float.h"

namespace lockstep {

namespace {

void check_numbers(const FeatureTransform& transform, const Shape& shape, std::int64_t channels,
                   const std::string& source) {
  for (const auto& [name, list] : {std::pair{"mean", &transform.mean}, std::pair{"std", &transform.std}}) {
    if (list->size() > 1 && list->size() != static_cast<std::size_t>(channels))
      throw Error(ErrorKind::data,
                  fmt::format("option {} has {} values, but the data has {} channels (sample shape {})", name,
                              list->size(), channels, shape.to_string()),
                  source, "Give one value per channel, or one for all.");
    for (float value : *list)
      if (!std::isfinite(value) || (list == &transform.std && !(value > 0)))
        throw Error(ErrorKind::data, fmt::format("option {} contains {}", name, value), source,
                    "mean must be finite, std finite and above 0.");
  }
  if (!std::isfinite(transform.scale) || !std::isfinite(transform.offset))
    throw Error(ErrorKind::data, "scale and offset must be finite", source, "Correct these options.");
}

}  // namespace

void complete_transform(DatasetParts& parts, const std::string& source) {
  FeatureTransform& transform = parts.transform;
  check_numbers(transform, parts.feature_shape, channels_of(parts.feature_shape, parts.sequence.has_value()),
                source);
  if (transform.normalize == NormalizeBy::elements && parts.sequence)
    throw Error(ErrorKind::config,
                "normalize: elements takes samples of one form, not sequences of any length", source,
                "Write normalize: channels.");
  if (transform.mean.empty() && transform.std.empty()) return;
  if (transform.mean.empty()) transform.mean = {0.0F};
  if (transform.std.empty()) transform.std = {1.0F};
}

FeatureConversion::FeatureConversion(const DatasetParts& parts, std::string source)
    : shape_(parts.feature_shape),
      type_(parts.feature_dtype),
      values_(parts.values_per_sample()),
      sequence_(parts.sequence),
      transform_(parts.transform),
      source_(std::move(source)) {
  if (!transform_.mean.empty())
    normalizer_ =
        ChannelNormalizer(transform_.mean, transform_.std, channels_of(shape_, sequence_.has_value()));
}

std::int64_t FeatureConversion::num_statistics() const {
  switch (normalize_by()) {
    case NormalizeBy::none:
      return 0;
    case NormalizeBy::channels:
      return channels_of(shape_, sequence_.has_value());
    case NormalizeBy::elements:
      return values_;
    case NormalizeBy::all:
      break;
  }
  return 1;
}

FeatureConversion FeatureConversion::normalized(std::shared_ptr<const Normalization> values) const {
  LOCKSTEP_CHECK(normalize_by() != NormalizeBy::none && only_scales());
  const bool by_elements = normalize_by() == NormalizeBy::elements;
  const auto extents = shape_.extents();
  if (std::ssize(values->mean) != num_statistics() || by_elements == values->shape.empty() ||
      (by_elements && !std::ranges::equal(values->shape, extents)))
    throw Error(ErrorKind::data,
                by_elements
                    ? fmt::format("has samples of {}, but the means and standard deviations are those of "
                                  "other elements",
                                  shape_.to_string())
                    : fmt::format("has {} channels, but the means and standard deviations are those of {}",
                                  num_statistics(), values->mean.size()),
                source_, "Use data of the form that the run began with.");
  FeatureConversion normalized = *this;
  normalized.transform_.mean = values->mean;
  normalized.transform_.std = values->std;
  const std::int64_t period = by_elements ? values_ : channels_of(shape_, sequence_.has_value());
  check_numbers(normalized.transform_, shape_, period, source_);
  normalized.normalizer_ = ChannelNormalizer(values->mean, values->std, period);
  normalized.normalization_ = std::move(values);
  return normalized;
}

template <typename T>
void FeatureConversion::convert_from(const void* stored, float* out) const {
  const T* const in = static_cast<const T*>(stored);
  const float scale = transform_.scale, offset = transform_.offset;
  const std::int64_t count = values_;
  for (std::int64_t i = 0; i < count; ++i) out[i] = as_float(in[i]) * scale + offset;
  if (!normalizer_.empty()) normalizer_.apply(out, out, count);
}

void FeatureConversion::convert(const void* stored, float* out) const {
  switch (type_) {
    case DType::u8:
      return convert_from<std::uint8_t>(stored, out);
    case DType::i8:
      return convert_from<std::int8_t>(stored, out);
    case DType::u16:
      return convert_from<std::uint16_t>(stored, out);
    case DType::i16:
      return convert_from<std::int16_t>(stored, out);
    case DType::i32:
      return convert_from<std::int32_t>(stored, out);
    case DType::i64:
      return convert_from<std::int64_t>(stored, out);
    case DType::f32:
      return convert_from<float>(stored, out);
    case DType::f64:
      return convert_from<double>(stored, out);
    case DType::bf16:
      return convert_from<BFloat16>(stored, out);
    case DType::f16:
      return convert_from<Float16>(stored, out);
  }
  LOCKSTEP_CHECK(false, "features of type {}", name_of(type_));
}

void FeatureConversion::convert_padded(const void* stored, float* out) const {
  convert(stored, out);
  if (!sequence_ || !sequence_->ends_in_nan()) return;
  const std::int64_t length = sequence_length(*sequence_, shape_, type_, stored);
  std::fill(out + length * (values_ / shape_[0]), out + values_, sequence_->padding);
}

}  // namespace lockstep
