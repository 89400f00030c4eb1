// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/placed_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "data/as_float.h"
#include "data/program_input.h"

namespace lockstep {

namespace {

std::string place_of(const std::string& name) { return fmt::format("input {}", name); }

Error wrong(const std::string& name, std::string what, std::string advice) {
  return Error(ErrorKind::data, std::move(what), place_of(name), std::move(advice));
}

/// Calls use() with a pointer to the numbers in their type.
template <typename Use>
void with_numbers(const NumberSpan& numbers, Use use) {
  switch (numbers.type()) {
    case DType::f32:
      return use(static_cast<const float*>(numbers.data()));
    case DType::f64:
      return use(static_cast<const double*>(numbers.data()));
    case DType::bf16:
      return use(static_cast<const BFloat16*>(numbers.data()));
    case DType::f16:
      return use(static_cast<const Float16*>(numbers.data()));
    case DType::i32:
      return use(static_cast<const std::int32_t*>(numbers.data()));
    case DType::i64:
      return use(static_cast<const std::int64_t*>(numbers.data()));
    case DType::u8:
      return use(static_cast<const std::uint8_t*>(numbers.data()));
    case DType::i8:
      return use(static_cast<const std::int8_t*>(numbers.data()));
    case DType::i16:
      return use(static_cast<const std::int16_t*>(numbers.data()));
    case DType::u16:
      return use(static_cast<const std::uint16_t*>(numbers.data()));
  }
}

bool is_whole(DType type) {
  return type != DType::f32 && type != DType::f64 && type != DType::bf16 && type != DType::f16;
}

/// The class indices as int32: in place, or converted.
void place_classes(const std::string& name, const NumberSpan& classes, PlacedSamples& samples) {
  if (classes.type() == DType::i32) {
    samples.at.label_indices = static_cast<const std::int32_t*>(classes.data());
    return;
  }
  if (!is_whole(classes.type()))
    throw wrong(name, fmt::format("class indices of type {}", name_of(classes.type())),
                "Give whole numbers as classes, or give them as targets.");
  samples.classes.reserve(classes.size());
  with_numbers(classes, [&]<typename T>(const T* values) {
    if constexpr (std::is_integral_v<T>)
      for (std::size_t i = 0; i < classes.size(); ++i) {
        if (!std::in_range<std::int32_t>(values[i]))
          throw wrong(name,
                      fmt::format("the class index {} of sample {} does not fit into 32 bits", values[i], i),
                      "Class indices count from 0.");
        samples.classes.push_back(static_cast<std::int32_t>(values[i]));
      }
  });
  samples.at.label_indices = samples.classes.data();
}

/// The targets as float32: in place, or converted.
void place_targets(const NumberSpan& targets, PlacedSamples& samples) {
  if (targets.type() == DType::f32) {
    samples.at.label_rows = static_cast<const float*>(targets.data());
    return;
  }
  samples.targets.reserve(targets.size());
  with_numbers(targets, [&]<typename T>(const T* values) {
    for (std::size_t i = 0; i < targets.size(); ++i) samples.targets.push_back(as_float(values[i]));
  });
  samples.at.label_rows = samples.targets.data();
}

}  // namespace

PlacedPointer placed(const std::string& name, const MemorySamples& given, bool may_be_empty) {
  const std::int64_t values = given.shape.num_elements();
  const auto numbers = static_cast<std::int64_t>(given.features.size());
  if (values < 1 || (numbers == 0 && !may_be_empty) || numbers % values != 0)
    throw wrong(
        name, fmt::format("{} values are no whole number of samples of {}", numbers, given.shape.to_string()),
        "Check the shape, and the number of values.");
  if (!given.classes.empty() && !given.targets.empty())
    throw wrong(name, "has class indices and targets", "Give one of them.");
  const auto samples = std::make_shared<PlacedSamples>();
  StoredForm& form = samples->form;
  form.size = numbers / values;
  form.feature_shape = given.shape;
  form.feature_dtype = given.features.type();
  samples->at.features = given.features.data();
  samples->owner = given.owner;
  if (!given.classes.empty()) {
    form.num_label_columns = 1;
    form.label_kind = LabelKind::indices;
    place_classes(name, given.classes, *samples);
  } else if (!given.targets.empty()) {
    form.num_label_columns = std::max<std::int64_t>(given.target_columns, 1);
    form.label_kind = LabelKind::rows;
    place_targets(given.targets, *samples);
  }
  const std::size_t labels = given.classes.size() + given.targets.size();
  if (labels != static_cast<std::size_t>(form.size * form.num_label_columns))
    throw wrong(name, fmt::format("{} labels for {} samples", labels, form.size),
                "Give one class index, or target_columns targets, per sample.");
  return samples;
}

PlacedPointer placed(const std::string& name, SampleArrays given, bool may_be_empty) {
  const auto kept = std::make_shared<const SampleArrays>(std::move(given));
  return placed(name,
                MemorySamples{.shape = kept->shape,
                              .features = kept->features,
                              .classes = kept->classes,
                              .targets = kept->targets,
                              .target_columns = kept->target_columns,
                              .owner = kept},
                may_be_empty);
}

void check_computed(const std::string& name, const ComputedSamples& samples, bool may_be_empty) {
  if (samples.size < (may_be_empty ? 0 : 1) || samples.shape.num_elements() < 1 ||
      samples.target_columns < 0 || !samples.fill)
    throw wrong(name, "has no samples", "Give size, shape and fill.");
  if (samples.has_classes && samples.target_columns > 0)
    throw wrong(name, "has class indices and targets", "Give one of them.");
}

StoredForm form_of(const ComputedSamples& samples) {
  StoredForm form;
  form.size = samples.size;
  form.feature_shape = samples.shape;
  form.num_label_columns = samples.has_classes ? 1 : samples.target_columns;
  form.label_kind = samples.has_classes          ? LabelKind::indices
                    : samples.target_columns > 0 ? LabelKind::rows
                                                 : LabelKind::none;
  return form;
}

void fill_sample(const std::string& name, const ComputedSamples& samples, std::int64_t i, float* features,
                 std::int32_t* label, float* targets) {
  try {
    samples.fill(i, features, label, targets);
  } catch (const Error&) {
    throw;  // it says what it has to say
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(ErrorKind::data, fmt::format("its function fill failed: {}", error.what()),
                                 fmt::format("{}, sample {}", place_of(name), i)));
  }
}

PlacedPointer placed(const std::string& name, const ComputedSamples& given) {
  check_computed(name, given, true);
  const std::int64_t values = given.shape.num_elements();
  const auto samples = std::make_shared<PlacedSamples>();
  const StoredForm& form = samples->form = form_of(given);
  samples->features.resize(static_cast<std::size_t>(given.size * values));
  const auto labels = static_cast<std::size_t>(form.num_label_columns * given.size);
  if (form.label_kind == LabelKind::indices) samples->classes.resize(labels);
  if (form.label_kind == LabelKind::rows) samples->targets.resize(labels);
  std::int32_t* const classes = form.label_kind == LabelKind::indices ? samples->classes.data() : nullptr;
  float* const targets = form.label_kind == LabelKind::rows ? samples->targets.data() : nullptr;
  for (std::int64_t i = 0; i < given.size; ++i)
    fill_sample(name, given, i, samples->features.data() + i * values,
                classes != nullptr ? classes + i : nullptr,
                targets != nullptr ? targets + i * given.target_columns : nullptr);
  samples->at = {samples->features.data(), classes, targets};
  return samples;
}

DatasetParts parts_of(const PlacedPointer& samples) {
  DatasetParts parts;
  static_cast<StoredForm&>(parts) = samples->form;
  parts.name = samples->where;
  parts.store = std::make_shared<LentStore>(samples->form, samples->at, samples);
  return parts;
}

}  // namespace lockstep
