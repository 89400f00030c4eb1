// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/hash.h"
#include "data/text_info.h"

namespace lockstep {

namespace {

/// Normalisation processes blocks of at least this many values.
constexpr std::size_t kPatternLength = 64;

template <typename T>
float as_float(T value) {
  return static_cast<float>(value);
}
template <>
float as_float(Float16 value) {
  return to_float(value);
}
template <>
float as_float(BFloat16 value) {
  return to_float(value);
}

/// The index of the first value that is not finite as a float32, or -1.
template <typename T>
std::int64_t first_not_finite(std::span<const T> values) {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](T value) { return !std::isfinite(as_float(value)); });
  return bad == values.end() ? -1 : bad - values.begin();
}

std::vector<float> repeated(const std::vector<float>& per_channel, std::size_t channels, std::size_t length) {
  std::vector<float> pattern(length);
  for (std::size_t i = 0; i < length; ++i)
    pattern[i] = per_channel.size() == 1 ? per_channel[0] : per_channel[i % channels];
  return pattern;
}

}  // namespace

Dataset::Dataset(DatasetParts parts) : parts_(std::move(parts)) {
  elements_per_sample_ = parts_.feature_shape.num_elements();
  if (parts_.feature_step == 0) parts_.feature_step = elements_per_sample_;
  if (parts_.label_step == 0) parts_.label_step = parts_.num_label_columns;
  const auto in_memory = [&](std::int64_t step, std::int64_t per_sample) {
    return parts_.size == 0 ? 0 : (parts_.size - 1) * step + per_sample;
  };
  const std::int64_t elements = num_features_ = in_memory(parts_.feature_step, elements_per_sample_);
  const auto labels = static_cast<std::size_t>(in_memory(parts_.label_step, parts_.num_label_columns));
  LOCKSTEP_CHECK(parts_.features.size_bytes() >=
                     static_cast<std::size_t>(elements) * size_in_bytes(parts_.feature_dtype),
                 "{} features", elements);
  if (parts_.num_label_columns > 0)
    label_kind_ = parts_.label_rows.empty() ? LabelKind::indices : LabelKind::rows;
  LOCKSTEP_CHECK(label_kind_ == LabelKind::indices ? parts_.label_indices.size() >= labels
                                                   : parts_.label_indices.empty());
  LOCKSTEP_CHECK(parts_.label_rows.size() == (label_kind_ == LabelKind::rows ? labels : 0));
  if (parts_.size == 0)
    throw Error(ErrorKind::data, "holds no samples", parts_.source, "Check the path and the option rows.");
  if (elements_per_sample_ == 0)
    throw Error(ErrorKind::data,
                fmt::format("its samples are empty (shape {})", parts_.feature_shape.to_string()),
                parts_.source, "Every sample needs at least one feature value.");
  check_finite();
  prepare_normalisation();
  fingerprint_ = computed_fingerprint();
}

void Dataset::check_finite() const {
  const auto elements = static_cast<std::size_t>(num_features_);
  std::int64_t bad = -1;
  if (parts_.feature_dtype == DType::f32)
    bad = first_not_finite<float>(parts_.features.as<float>().first(elements));
  if (parts_.feature_dtype == DType::f64)
    bad = first_not_finite<double>(parts_.features.as<double>().first(elements));
  if (parts_.feature_dtype == DType::f16)
    bad = first_not_finite<Float16>(parts_.features.as<Float16>().first(elements));
  if (parts_.feature_dtype == DType::bf16)
    bad = first_not_finite<BFloat16>(parts_.features.as<BFloat16>().first(elements));
  const char* const advice = "Remove or repair the record; NaN and Inf cannot be trained on.";
  if (bad >= 0)
    throw Error(
        ErrorKind::data,
        fmt::format("column {} of the features is not a finite number", bad % elements_per_sample_ + 1),
        where(bad / elements_per_sample_), advice);
  bad = first_not_finite<float>(parts_.label_rows);
  if (bad >= 0)
    throw Error(ErrorKind::data,
                fmt::format("label column {} is not a finite number", bad % parts_.num_label_columns + 1),
                where(bad / parts_.num_label_columns), advice);
}

void Dataset::prepare_normalisation() {
  FeatureTransform& transform = parts_.transform;
  const auto channels = static_cast<std::size_t>(parts_.feature_shape.last());
  for (const auto& [name, list] : {std::pair{"mean", &transform.mean}, std::pair{"std", &transform.std}}) {
    if (list->size() > 1 && list->size() != channels)
      throw Error(ErrorKind::data,
                  fmt::format("option {} has {} values, but the data has {} channels (sample shape {})", name,
                              list->size(), channels, parts_.feature_shape.to_string()),
                  parts_.source, "Give one value per channel, or one for all.");
    for (float value : *list)
      if (!std::isfinite(value) || (list == &transform.std && !(value > 0)))
        throw Error(ErrorKind::data, fmt::format("option {} contains {}", name, value), parts_.source,
                    "mean must be finite, std finite and above 0.");
  }
  if (!std::isfinite(transform.scale) || !std::isfinite(transform.offset))
    throw Error(ErrorKind::data, "scale and offset must be finite", parts_.source, "Correct these options.");
  if (transform.mean.empty() && transform.std.empty()) return;
  if (transform.mean.empty()) transform.mean = {0.0F};
  if (transform.std.empty()) transform.std = {1.0F};
  const std::size_t pixels = (kPatternLength + channels - 1) / channels;
  mean_pattern_ = repeated(transform.mean, channels, pixels * channels);
  std_pattern_ = repeated(transform.std, channels, pixels * channels);
}

template <typename T>
void Dataset::gather(std::span<const std::int64_t> samples, float* out) const {
  const T* const features = parts_.features.as<T>().data();
  const float scale = parts_.transform.scale, offset = parts_.transform.offset;
  const std::int64_t count = elements_per_sample_;
  const auto period = static_cast<std::int64_t>(mean_pattern_.size());
  for (const std::int64_t sample : samples) {
    LOCKSTEP_DCHECK(sample >= 0 && sample < parts_.size);
    const T* const in = features + sample * parts_.feature_step;
    for (std::int64_t i = 0; i < count; ++i) out[i] = as_float(in[i]) * scale + offset;
    for (std::int64_t first = 0; period > 0 && first < count; first += period) {
      const std::int64_t block = std::min(period, count - first);
      float* const values = out + first;
      for (std::int64_t i = 0; i < block; ++i)
        values[i] = (values[i] - mean_pattern_[static_cast<std::size_t>(i)]) /
                    std_pattern_[static_cast<std::size_t>(i)];
    }
    out += count;
  }
}

void Dataset::gather_features(std::span<const std::int64_t> samples, float* out) const {
  switch (parts_.feature_dtype) {
    case DType::u8:
      return gather<std::uint8_t>(samples, out);
    case DType::i8:
      return gather<std::int8_t>(samples, out);
    case DType::u16:
      return gather<std::uint16_t>(samples, out);
    case DType::i16:
      return gather<std::int16_t>(samples, out);
    case DType::i32:
      return gather<std::int32_t>(samples, out);
    case DType::i64:
      return gather<std::int64_t>(samples, out);
    case DType::f32:
      return gather<float>(samples, out);
    case DType::f64:
      return gather<double>(samples, out);
    case DType::bf16:
      return gather<BFloat16>(samples, out);
    case DType::f16:
      return gather<Float16>(samples, out);
  }
  LOCKSTEP_CHECK(false, "features of type {}", name_of(parts_.feature_dtype));
}

void Dataset::gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const {
  LOCKSTEP_CHECK(label_kind_ == LabelKind::indices, "{} has no class indices", parts_.source);
  const std::int64_t columns = parts_.num_label_columns;
  for (const std::int64_t sample : samples)
    out = std::copy_n(parts_.label_indices.data() + sample * parts_.label_step, columns, out);
}

void Dataset::gather_labels(std::span<const std::int64_t> samples, float* out) const {
  LOCKSTEP_CHECK(label_kind_ != LabelKind::none, "{} has no labels", parts_.source);
  const std::int64_t columns = parts_.num_label_columns;
  for (const std::int64_t sample : samples) {
    if (label_kind_ == LabelKind::rows) {
      out = std::copy_n(parts_.label_rows.data() + sample * columns, columns, out);
    } else {
      const std::int32_t* const in = parts_.label_indices.data() + sample * parts_.label_step;
      out =
          std::transform(in, in + columns, out, [](std::int32_t label) { return static_cast<float>(label); });
    }
  }
}

std::string Dataset::where(std::int64_t sample) const {
  if (!parts_.files.empty()) {
    const auto next = std::upper_bound(
        parts_.files.begin(), parts_.files.end(), sample,
        [](std::int64_t wanted, const DatasetFile& file) { return wanted < file.first_sample; });
    const DatasetFile& file = *std::prev(next);
    return fmt::format("{}, {} {}", file.name, parts_.record_word,
                       file.first_record + sample - file.first_sample);
  }
  const std::int64_t record = parts_.records.empty() ? parts_.first_record + sample
                                                     : parts_.records[static_cast<std::size_t>(sample)];
  return fmt::format("{}, {} {}", parts_.source, parts_.record_word, record);
}

void Dataset::check_labels(const LabelRule& rule, std::int64_t first, std::int64_t last) const {
  if (label_kind_ == LabelKind::none)
    throw Error(ErrorKind::data, "has no labels", parts_.source, "Name the labels in the reader's options.");
  LOCKSTEP_CHECK(first >= 0 && first < last && last <= parts_.num_label_columns);
  for (std::int64_t sample = 0; sample < parts_.size; ++sample)
    for (std::int64_t column = first; column < last; ++column) {
      const auto index = static_cast<std::size_t>(sample * parts_.label_step + column);
      const double label = label_kind_ == LabelKind::indices ? parts_.label_indices[index]
                                                             : static_cast<double>(parts_.label_rows[index]);
      if (rule.allows(label)) continue;
      throw Error(ErrorKind::data,
                  fmt::format("label {}{} is not {}{}", label,
                              parts_.num_label_columns == 1 ? "" : fmt::format(" in label column {}", column),
                              rule.wanted,
                              rule.ignored ? fmt::format(" (or {}, which is ignored)", *rule.ignored) : ""),
                  where(sample), "Check the label columns, the loss and the model's output size.");
    }
}

std::string Dataset::computed_fingerprint() const {
  Digest digest;
  digest.add(std::string_view(name_of(parts_.feature_dtype)))
      .add(std::string_view(parts_.feature_shape.to_string()));
  digest.add(parts_.size).add(parts_.num_label_columns).add(static_cast<std::int64_t>(label_kind_));
  digest.add(parts_.features.data(),
             static_cast<std::size_t>(num_features_) * size_in_bytes(parts_.feature_dtype));
  digest.add(parts_.label_indices.data(), parts_.label_indices.size() * sizeof(std::int32_t));
  digest.add(parts_.label_rows.data(), parts_.label_rows.size() * sizeof(float));
  const FeatureTransform& transform = parts_.transform;
  digest.add(&transform.scale, sizeof(float)).add(&transform.offset, sizeof(float));
  for (const std::vector<float>* list : {&transform.mean, &transform.std}) {
    digest.add(static_cast<std::int64_t>(list->size()));
    digest.add(list->data(), list->size() * sizeof(float));
  }
  if (parts_.feature_step != elements_per_sample_) digest.add(parts_.feature_step).add(parts_.label_step);
  if (parts_.text) {
    digest.add(std::string_view(parts_.text->vocabulary.digest()));
    for (const std::string& name : parts_.text->class_names) digest.add(std::string_view(name));
  }
  return digest.hex().substr(0, 16);
}

RowRange checked_rows(const std::optional<RowRange>& rows, std::int64_t available,
                      const std::string& source) {
  if (!rows) return {0, available};
  if (rows->first >= 0 && rows->first < rows->last && rows->last <= available) return *rows;
  throw Error(
      ErrorKind::data,
      fmt::format("rows [{}, {}) were requested, but there are {} rows", rows->first, rows->last, available),
      source, "Give rows as [first, last): 0-based, the last one not included.");
}

}  // namespace lockstep
