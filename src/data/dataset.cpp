// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/device.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/in_parallel.h"
#include "data/as_float.h"
#include "data/sample_stream.h"
#include "data/text_info.h"

namespace lockstep {

namespace {

/// Blocks have about so many bytes, unless one chunk has more.
constexpr std::int64_t kBlockBytes = std::int64_t{1} << 18;
/// Without regard to blocks, so much is read for one sample.
constexpr std::int64_t kPageBytes = 4096;

template <typename T>
std::int64_t sum_over(const std::vector<JoinedInput>& inputs, T (Dataset::*bytes)() const) {
  std::int64_t sum = 0;
  for (const JoinedInput& input : inputs) sum += ((*input.data).*bytes)();
  return sum;
}

}  // namespace

Dataset::Dataset(DatasetParts parts) : parts_(std::move(parts)) {
  origin_ = std::make_shared<const SampleOrigin>(std::move(static_cast<SampleOrigin&>(parts_)));
  elements_per_sample_ = parts_.feature_shape.num_elements();
  if (parts_.feature_step == 0) parts_.feature_step = elements_per_sample_;
  if (parts_.label_step == 0) parts_.label_step = parts_.num_label_columns;
  if (parts_.size == 0)
    throw Error(ErrorKind::data, "holds no samples", origin_->source, "Check the path and the option rows.");
  if (elements_per_sample_ == 0)
    throw Error(ErrorKind::data,
                fmt::format("its samples are empty (shape {})", parts_.feature_shape.to_string()),
                origin_->source, "Every sample needs at least one feature value.");
  num_features_ = (parts_.size - 1) * parts_.feature_step + elements_per_sample_;
  make_checks();
  prepare_normalisation();
  if (has_store()) {
    LOCKSTEP_CHECK(parts_.feature_step == elements_per_sample_);
    label_kind_ = parts_.label_kind;
    if (parts_.features.size_bytes() > 0) set_values();
    return;
  }
  if (parts_.num_label_columns > 0)
    label_kind_ = parts_.label_rows.empty() ? LabelKind::indices : LabelKind::rows;
  set_values();
  check_values();
}

Dataset::~Dataset() = default;
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;

void Dataset::make_checks() {
  checks_ = std::make_shared<SampleChecks>(
      SampleForm{.feature_type = parts_.feature_dtype,
                 .features = elements_per_sample_,
                 .ends_in_nan = parts_.sequence && parts_.sequence->ends_in_nan(),
                 .label_columns = parts_.num_label_columns,
                 .label_step = parts_.label_step},
      origin_);
}

void Dataset::set_values() {
  values_ = {.features = parts_.features.data()};
  if (label_kind_ == LabelKind::indices) values_.label_indices = parts_.label_indices.data();
  if (label_kind_ == LabelKind::rows) values_.label_rows = parts_.label_rows.data();
  LOCKSTEP_CHECK(parts_.features.size_bytes() >=
                     static_cast<std::size_t>(num_features_) * size_in_bytes(parts_.feature_dtype),
                 "{} features", num_features_);
  const auto labels = static_cast<std::size_t>(num_labels());
  LOCKSTEP_CHECK(label_kind_ == LabelKind::indices ? parts_.label_indices.size() >= labels
                                                   : parts_.label_indices.empty());
  LOCKSTEP_CHECK(parts_.label_rows.size() == (label_kind_ == LabelKind::rows ? labels : 0));
}

void Dataset::check_values(int threads) {
  // Overlapping samples are whole numbers.
  if (parts_.feature_step == elements_per_sample_) checks_->check_finite(0, parts_.size, values_at(0));
  fingerprint_ = computed_fingerprint(threads);
}

SampleValues Dataset::values_at(std::int64_t sample) const {
  SampleValues values{.features = static_cast<const char*>(values_.features) +
                                  static_cast<std::size_t>(sample * parts_.feature_step) *
                                      size_in_bytes(parts_.feature_dtype)};
  if (label_kind_ == LabelKind::indices)
    values.label_indices = values_.label_indices + sample * parts_.label_step;
  if (label_kind_ == LabelKind::rows) values.label_rows = values_.label_rows + sample * parts_.label_step;
  return values;
}

std::int64_t Dataset::num_labels() const {
  return parts_.num_label_columns == 0 ? 0 : (parts_.size - 1) * parts_.label_step + parts_.num_label_columns;
}

std::int64_t Dataset::sample_bytes() const {
  return elements_per_sample_ * static_cast<std::int64_t>(size_in_bytes(parts_.feature_dtype));
}

std::int64_t Dataset::size_bytes() const {
  if (!inputs_.empty())
    return sum_over(inputs_, &Dataset::size_bytes) + sum_over(targets_, &Dataset::size_bytes);
  constexpr std::int64_t kLabelBytes = 4;
  const std::int64_t of_features =
      num_features_ * static_cast<std::int64_t>(size_in_bytes(parts_.feature_dtype));
  std::int64_t bytes = 0;  // damaged files may claim any extents
  if (__builtin_add_overflow(of_features, parts_.size * parts_.label_step * kLabelBytes, &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return bytes;
}

std::int64_t Dataset::memory_bytes() const {
  if (!inputs_.empty())
    return sum_over(inputs_, &Dataset::memory_bytes) + sum_over(targets_, &Dataset::memory_bytes);
  return stream_ != nullptr ? stream_->memory_bytes() : size_bytes();
}

BlockGrid Dataset::grid(std::int64_t block_samples) const {
  if (block_samples == 0) {
    const std::int64_t chunk = has_store() ? parts_.store->samples_per_chunk() : 1;
    const std::int64_t chunk_bytes = chunk * sample_bytes();
    block_samples = chunk * std::max<std::int64_t>(1, kBlockBytes / chunk_bytes);
  }
  std::vector<BlockGrid::Piece> pieces;
  for (const DatasetFile& file : origin_->files) pieces.push_back({file.first_sample, file.first_record});
  if (pieces.empty()) pieces.push_back({0, origin_->records.empty() ? origin_->first_record : 0});
  return {std::move(pieces), parts_.size, std::min(block_samples, parts_.size)};
}

void Dataset::prepare(const DatasetMemory& memory) {
  LOCKSTEP_CHECK(has_store() && stream_ == nullptr);
  block_samples_ = memory.block_samples;
  const int threads = whole_set_threads(memory.threads);
  const bool fits = size_bytes() <= memory.bytes;
  if (values_.features != nullptr && (owner_ != nullptr || fits)) return check_values(threads);
  if (parts_.store->has_random_access()) forget_values();
  if (memory.read_once && parts_.store->has_random_access()) {
    fingerprint_ = computed_fingerprint(threads);
    read_once_ = true;
    return;
  }
  if (fits) return load(parts_.store->has_random_access() ? threads : 1);
  if (!parts_.store->has_random_access())
    throw Error(
        ErrorKind::config,
        fmt::format("takes {:.3g} GB, but memory_gb gives this process {:.3g} GB, and a file that is "
                    "compressed as a whole cannot be read while it is used",
                    static_cast<double>(size_bytes()) * 1e-9, static_cast<double>(memory.bytes) * 1e-9),
        origin_->source, "Uncompress the file, or set memory_gb higher.");
  const std::int64_t least = parts_.store->decodes_samples()
                                 ? 1
                                 : std::max(parts_.store->samples_per_chunk(), kPageBytes / sample_bytes());
  const BlockGrid read_together = memory.random_order && memory.block_samples == 0 ? grid(least) : blocks();
  const SampleSizes sizes{.feature_bytes = sample_bytes(),
                          .label_indices = label_kind_ == LabelKind::indices ? parts_.num_label_columns : 0,
                          .label_rows = label_kind_ == LabelKind::rows ? parts_.num_label_columns : 0};
  fingerprint_ = computed_fingerprint(threads);
  stream_ = std::make_unique<SampleStream>(
      parts_.store, read_together, sizes,
      [checks = checks_](std::int64_t first, std::int64_t count, const SampleValues& values) {
        checks->check_finite(first, count, values);
        checks->check_labels(first, count, values);
      },
      [origin = origin_](std::int64_t sample) { return origin->where(sample); },
      SampleStreamOptions{.memory_bytes = memory.bytes,
                          .timeout_seconds = memory.timeout_seconds,
                          .threads = memory.threads});
}

template <typename T>
void Dataset::convert(const void* sample, float* out) const {
  const T* const in = static_cast<const T*>(sample);
  const float scale = parts_.transform.scale, offset = parts_.transform.offset;
  const std::int64_t count = elements_per_sample_;
  for (std::int64_t i = 0; i < count; ++i) out[i] = as_float(in[i]) * scale + offset;
  if (!normalizer_.empty()) normalizer_.apply(out, out, count);
}

void Dataset::convert(const void* sample, float* out) const {
  switch (parts_.feature_dtype) {
    case DType::u8:
      return convert<std::uint8_t>(sample, out);
    case DType::i8:
      return convert<std::int8_t>(sample, out);
    case DType::u16:
      return convert<std::uint16_t>(sample, out);
    case DType::i16:
      return convert<std::int16_t>(sample, out);
    case DType::i32:
      return convert<std::int32_t>(sample, out);
    case DType::i64:
      return convert<std::int64_t>(sample, out);
    case DType::f32:
      return convert<float>(sample, out);
    case DType::f64:
      return convert<double>(sample, out);
    case DType::bf16:
      return convert<BFloat16>(sample, out);
    case DType::f16:
      return convert<Float16>(sample, out);
  }
  LOCKSTEP_CHECK(false, "features of type {}", name_of(parts_.feature_dtype));
}

template <typename Use>
void Dataset::for_each(std::span<const std::int64_t> samples, Use use) const {
  for (const std::int64_t sample : samples) {
    LOCKSTEP_DCHECK(sample >= 0 && sample < parts_.size && !read_once_);
    if (stream_ == nullptr)
      use(values_at(sample));
    else
      stream_->with_sample(sample, use);
  }
}

void Dataset::set_transforms(TransformList transforms, bool training) {
  LOCKSTEP_CHECK(inputs_.empty(), "each input has transforms of its own");
  transforms_ = std::move(transforms);
  if (knows_shape()) transforms_.prepare(whitened_shape());
  training_ = training;
  if (auto text = transforms_.text(); text != nullptr && text != parts_.text) {
    parts_.text = std::move(text);
    Digest digest;
    digest.add(std::string_view(fingerprint_)).add(std::string_view(parts_.text->vocabulary.digest()));
    fingerprint_ = digest.hex().substr(0, 16);
  }
}

void Dataset::set_mixing(const MixingOptions& options) {
  mixing_.emplace(options, feature_shape(), label_kind_ == LabelKind::indices, parts_.num_label_columns);
}

void Dataset::gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                              std::int64_t step, float* scratch) const {
  LOCKSTEP_CHECK(normalize_by() == NormalizeBy::none || normalization() != nullptr);
  if (whiten_by_.used()) return gather_whitened(samples, key, out, step, scratch);
  for (const JoinedInput& input : inputs_) {
    input.data->gather_features(samples, key, out, step, scratch);
    out += input.data->feature_shape().num_elements();
  }
  if (!inputs_.empty()) return;
  SampleKey own = key;
  for_each(samples, [&](const SampleValues& values) {
    float* const converted = transforms_.in_place() ? out : scratch;
    convert_padded(values.features, converted);
    if (!transforms_.empty()) {
      transform(samples[static_cast<std::size_t>(own.place - key.place)], converted, out,
                training_ ? &own : nullptr, scratch);
    }
    ++own.place;
    out += step;
  });
}

void Dataset::transform(std::int64_t sample, float* values, float* out, const SampleKey* key,
                        float* scratch) const {
  try {
    transforms_.apply(values, out, key, scratch);
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.kind(), error.what_happened(), where(sample), error.advice());
  }
}

void Dataset::gather_scaled(std::int64_t sample, float* out) const {
  LOCKSTEP_CHECK(normalizer_.empty());
  for_each({&sample, 1}, [&](const SampleValues& values) { convert(values.features, out); });
}

void Dataset::gather_unwhitened(std::int64_t sample, float* out) const {
  for_each({&sample, 1}, [&](const SampleValues& values) { convert(values.features, out); });
}

void Dataset::read_stored(std::int64_t first, std::int64_t count, const SampleRoom& to) const {
  LOCKSTEP_CHECK(first >= 0 && count >= 0 && first + count <= parts_.size);
  if (read_once_) {
    parts_.store->read(first, count, to);
    checks_->check_finite(first, count, to);
    return;
  }
  const std::int64_t bytes = sample_bytes(), columns = parts_.num_label_columns;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sample = first + i;
    for_each({&sample, 1}, [&](const SampleValues& values) {
      std::copy_n(static_cast<const char*>(values.features), bytes,
                  static_cast<char*>(to.features) + i * bytes);
      if (label_kind_ == LabelKind::indices)
        std::copy_n(values.label_indices, columns, to.label_indices + i * columns);
      if (label_kind_ == LabelKind::rows)
        std::copy_n(values.label_rows, columns, to.label_rows + i * columns);
    });
  }
}

void Dataset::gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const {
  if (!inputs_.empty()) return labelled().gather_labels(samples, out);
  LOCKSTEP_CHECK(label_kind_ == LabelKind::indices, "{} has no class indices", origin_->source);
  for_each(samples, [&](const SampleValues& values) {
    out = std::copy_n(values.label_indices, parts_.num_label_columns, out);
  });
}

void Dataset::gather_labels(std::span<const std::int64_t> samples, float* out) const {
  std::vector<float> scratch(static_cast<std::size_t>(targets_.empty() ? 0 : scratch_values()));
  gather_labels(samples, {}, out, scratch.data());
}

void Dataset::gather_labels(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                            float* scratch) const {
  if (!targets_.empty()) {
    float* column = out;
    for (const JoinedInput& target : targets_) {
      target.data->gather_features(samples, key, column, parts_.num_label_columns, scratch);
      column += target.data->feature_shape().num_elements();
    }
    return check_targets(samples, out);
  }
  if (!inputs_.empty()) return labelled().gather_labels(samples, key, out, scratch);
  LOCKSTEP_CHECK(label_kind_ != LabelKind::none, "{} has no labels", origin_->source);
  for_each(samples, [&](const SampleValues& values) {
    if (label_kind_ == LabelKind::rows)
      out = std::copy_n(values.label_rows, parts_.num_label_columns, out);
    else
      out = std::transform(values.label_indices, values.label_indices + parts_.num_label_columns, out,
                           [](std::int32_t label) { return static_cast<float>(label); });
  });
}

void Dataset::name_classes(std::vector<std::string> names) {
  LOCKSTEP_CHECK(parts_.class_names.empty() && stream_ == nullptr);
  parts_.class_names = std::move(names);
  if (!has_store()) fingerprint_ = computed_fingerprint();
}

std::string Dataset::where(std::int64_t sample) const { return origin_->where(sample); }

void Dataset::check_labels(const LabelRule& rule, std::int64_t first, std::int64_t last) const {
  if (label_kind_ == LabelKind::none)
    throw Error(ErrorKind::data, "has no labels", origin_->source,
                "Name the labels in the reader's options.");
  if (!targets_.empty()) {
    demands_.push_back({rule, first, last});
    return check_all_targets();
  }
  if (!inputs_.empty()) return labelled().check_labels(rule, first, last);
  checks_->demand(rule, first, last);
  if (stream_ == nullptr) checks_->check_labels(0, parts_.size, values_at(0));
}

}  // namespace lockstep
