// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_checks.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "core/half.h"
#include "data/value_place.h"

namespace lockstep {

namespace {

/// As a float32.
template <typename T>
bool is_finite(T value) {
  return std::isfinite(static_cast<float>(value));
}
template <>
bool is_finite(Float16 value) {
  return std::isfinite(to_float(value));
}
template <>
bool is_finite(BFloat16 value) {
  return std::isfinite(to_float(value));
}

/// The index of the first value that is not finite, or -1.
template <typename T>
std::int64_t first_not_finite(const void* values, std::int64_t count) {
  const std::span all(static_cast<const T*>(values), static_cast<std::size_t>(count));
  const auto bad = std::ranges::find_if(all, [](T value) { return !is_finite(value); });
  return bad == all.end() ? -1 : bad - all.begin();
}

std::int64_t first_not_finite(DType type, const void* values, std::int64_t count) {
  switch (type) {
    case DType::f32:
      return first_not_finite<float>(values, count);
    case DType::f64:
      return first_not_finite<double>(values, count);
    case DType::f16:
      return first_not_finite<Float16>(values, count);
    case DType::bf16:
      return first_not_finite<BFloat16>(values, count);
    default:
      return -1;
  }
}

}  // namespace

std::string SampleOrigin::where(std::int64_t sample) const {
  if (name) return name(sample);
  if (!files.empty()) {
    const auto next = std::upper_bound(
        files.begin(), files.end(), sample,
        [](std::int64_t wanted, const DatasetFile& file) { return wanted < file.first_sample; });
    const DatasetFile& file = *std::prev(next);
    return fmt::format("{}, {} {}", file.name, record_word, file.first_record + sample - file.first_sample);
  }
  const std::int64_t record =
      records.empty() ? first_record + sample : records[static_cast<std::size_t>(sample)];
  return fmt::format("{}, {} {}", source, record_word, record);
}

void SampleChecks::check_finite(std::int64_t first, std::int64_t count, const SampleValues& values) const {
  const auto fail = [&](std::string what, std::int64_t sample) {
    throw Error(ErrorKind::data, what + " is not a finite number", origin_->where(first + sample),
                "Remove or repair the record; NaN and Inf cannot be trained on.");
  };
  const std::int64_t features = form_.ends_in_nan ? 0 : count * form_.shape.num_elements();
  if (const std::int64_t bad = first_not_finite(form_.feature_type, values.features, features); bad >= 0)
    fail(place_text(form_.shape, bad % form_.shape.num_elements()) + " of the features",
         bad / form_.shape.num_elements());
  if (values.label_rows == nullptr) return;
  if (const std::int64_t bad = first_not_finite<float>(values.label_rows, count * form_.label_columns);
      bad >= 0)
    fail(label_column_text(bad % form_.label_columns, form_.label_columns), bad / form_.label_columns);
}

void SampleChecks::demand(const LabelDemand& demand) {
  LOCKSTEP_CHECK(demand.first >= 0 && demand.first < demand.last && demand.last <= form_.label_columns);
  const std::lock_guard lock(mutex_);
  demands_.push_back(demand);
}

void SampleChecks::check_labels(std::int64_t first, std::int64_t count, const SampleValues& values) const {
  const std::lock_guard lock(mutex_);
  for (const LabelDemand& demand : demands_)
    for (std::int64_t i = 0; i < count; ++i) check(demand, first + i, i, values);
}

void SampleChecks::check(const LabelDemand& demand, std::int64_t sample, std::int64_t in_block,
                         const SampleValues& values) const {
  const auto label_of = [&](std::int64_t column) {
    const std::int64_t index = in_block * form_.label_step + column;
    return values.label_indices != nullptr ? values.label_indices[index]
                                           : static_cast<double>(values.label_rows[index]);
  };
  for (std::int64_t column = demand.first; column < demand.last; ++column)
    if (const double label = label_of(column); !demand.allows(label))
      throw Error(
          ErrorKind::data,
          fmt::format("label {}{} is not {}{}", label,
                      form_.label_columns == 1 ? "" : " in " + label_column_text(column, form_.label_columns),
                      demand.wanted,
                      demand.ignored ? fmt::format(" (or {}, which is ignored)", *demand.ignored) : ""),
          origin_->where(sample), demand.advice);
  if (const auto bad = first_bad_sum(demand, label_of))
    throw Error(ErrorKind::data,
                fmt::format("label columns {} to {} (from 0) sum to {:.4g}, not to 1", bad->first,
                            bad->first + demand.distribution - 1, bad->sum),
                origin_->where(sample), demand.advice);
}

}  // namespace lockstep
