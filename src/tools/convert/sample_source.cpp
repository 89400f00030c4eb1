// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/sample_source.h"

#include <cstring>

#include "core/hash.h"
#include "data/as_float.h"

namespace lockstep {

namespace {

template <typename T>
void to_floats(const char* stored, std::int64_t values, float* out) {
  for (std::int64_t i = 0; i < values; ++i) {
    T value;
    std::memcpy(&value, stored + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    out[i] = as_float(value);
  }
}

void to_floats(DType type, const char* stored, std::int64_t values, float* out) {
  switch (type) {
    case DType::u8:
      return to_floats<std::uint8_t>(stored, values, out);
    case DType::i8:
      return to_floats<std::int8_t>(stored, values, out);
    case DType::u16:
      return to_floats<std::uint16_t>(stored, values, out);
    case DType::i16:
      return to_floats<std::int16_t>(stored, values, out);
    case DType::i32:
      return to_floats<std::int32_t>(stored, values, out);
    case DType::i64:
      return to_floats<std::int64_t>(stored, values, out);
    case DType::f32:
      return to_floats<float>(stored, values, out);
    case DType::f64:
      return to_floats<double>(stored, values, out);
    case DType::bf16:
      return to_floats<BFloat16>(stored, values, out);
    case DType::f16:
      return to_floats<Float16>(stored, values, out);
  }
}

}  // namespace

SampleSource::SampleSource(UsedDataset set, bool transformed, SampleFormat format)
    : data_(std::move(set)),
      transformed_(transformed),
      type_(stored_type(format, transformed ? DType::f32 : data().feature_dtype())) {
  if (data().sequence() != nullptr && data().sequence()->ends_in_nan() && !transformed_)
    throw Error(ErrorKind::config,
                "sequences of different lengths have no form in other files; with --transforms they are "
                "written with their padding",
                data().where(0), "Add --transforms, and convert their lengths likewise (lengths: true).");
}

Samples SampleSource::read(std::int64_t first, std::int64_t count) const {
  const std::int64_t bytes =
      data().stored_shape().num_elements() * static_cast<std::int64_t>(size_in_bytes(data().feature_dtype()));
  const auto labels = static_cast<std::size_t>(count * data().num_label_columns());
  Samples samples{.count = count, .features = {}, .label_indices = {}, .label_rows = {}};
  samples.features.resize(static_cast<std::size_t>(count * bytes));
  if (data().label_kind() == LabelKind::indices) samples.label_indices.resize(labels);
  if (data().label_kind() == LabelKind::rows) samples.label_rows.resize(labels);
  for (std::int64_t done = 0, run = 0; done < count; done += run) {
    const std::int64_t sample = sample_at(first + done);
    for (run = 1; done + run < count && sample_at(first + done + run) == sample + run;) ++run;
    SampleRoom to{.features = samples.features.data() + done * bytes};
    const std::int64_t label = done * data().num_label_columns();
    if (!samples.label_indices.empty()) to.label_indices = samples.label_indices.data() + label;
    if (!samples.label_rows.empty()) to.label_rows = samples.label_rows.data() + label;
    data().stored().read(sample, run, to);
  }
  if (transformed_ || type_ != data().feature_dtype()) samples.features = converted(samples.features, count);
  return samples;
}

std::vector<char> SampleSource::converted(const std::vector<char>& stored, std::int64_t count) const {
  const std::int64_t from = static_cast<std::int64_t>(stored.size()) / count, to = shape().num_elements();
  std::vector<float> values(static_cast<std::size_t>(count * to));
  std::vector<float> scratch(static_cast<std::size_t>(transformed_ ? data().scratch_values() : 0));
  for (std::int64_t i = 0; i < count; ++i) {
    const char* const sample = stored.data() + i * from;
    float* const out = values.data() + i * to;
    if (transformed_)
      data().transform_stored(sample, out, scratch.data());
    else
      to_floats(data().feature_dtype(), sample, to, out);
  }
  std::vector<char> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::uint64_t hash_of(const Samples& samples) {
  Hash64 hash;
  hash.add(samples.features.data(), samples.features.size());
  hash.add(samples.label_indices.data(), samples.label_indices.size() * sizeof(std::int32_t));
  hash.add(samples.label_rows.data(), samples.label_rows.size() * sizeof(float));
  return hash.value();
}

}  // namespace lockstep
