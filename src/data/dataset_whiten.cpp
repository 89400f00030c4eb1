// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a Dataset whitens. Its scratch memory: that of the transforms, then rows of samples, and whitened rows.
#include <algorithm>

#include "core/error.h"
#include "data/dataset.h"
#include "data/whitening.h"

namespace lockstep {

namespace {
/// Samples that share what is read of the matrix: no more than these, and of about so many values.
constexpr std::int64_t kMostTogether = 16, kValuesTogether = std::int64_t{1} << 16;
}  // namespace

void Dataset::set_whitening(const WhitenOptions& options) {
  if (!options.used()) return;
  LOCKSTEP_CHECK(inputs_.empty() && transforms_.empty());
  if (text() != nullptr)
    throw Error(ErrorKind::config, "its samples are texts, which cannot be whitened", origin_->source,
                "Leave out whiten.");
  if (sequence() != nullptr)
    throw Error(ErrorKind::config,
                "its samples are sequences of different lengths, whose padding would be whitened, too",
                origin_->source, "Leave out whiten.");
  whiten_by_ = options;
  const std::optional<Shape> shape = lockstep::whitened_shape(options, stored_shape());
  knows_shape_ = shape.has_value();
  if (shape) whitened_shape_ = *shape;
}

void Dataset::whiten(Whitening values) {
  LOCKSTEP_CHECK(whiten_by_.used() && whitener_.empty());
  WhitenOptions options = whiten_by_;
  if (options.share > 0)
    options = {
        .method = options.method, .over_channels = options.over_channels, .components = values.components()};
  const std::int64_t wanted = options.over_channels ? stored_shape().last() : stored_shape().num_elements();
  const std::int64_t components = options.components == 0 ? wanted : options.components;
  if (values.values() != wanted || values.components() != components)
    throw Error(
        ErrorKind::data,
        fmt::format(
            "has vectors of {} values, {} components each, but the whitening is one of {} values and {} "
            "components",
            wanted, components, values.values(), values.components()),
        origin_->source, "Use data of the form that the run began with.");
  whitener_ = Whitener(values);
  whitening_ = std::move(values);
  if (knows_shape_) return;
  whitened_shape_ = *lockstep::whitened_shape(options, stored_shape());
  knows_shape_ = true;
  transforms_.prepare(whitened_shape_);
}

std::int64_t Dataset::samples_whitened_together() const {
  return std::clamp<std::int64_t>(kValuesTogether / elements_per_sample_, 1, kMostTogether);
}

std::int64_t Dataset::whitening_scratch_values() const {
  // No more components than values.
  return whiten_by_.used()
             ? transforms_.scratch_values() + 2 * samples_whitened_together() * elements_per_sample_
             : 0;
}

void Dataset::finish_rows(float* rows, std::int64_t count, const SampleKey* key, float* out,
                          std::int64_t step, float* scratch) const {
  float* const whitened =
      scratch + transforms_.scratch_values() + samples_whitened_together() * elements_per_sample_;
  const std::int64_t size = whitened_shape().num_elements();
  whitener_.apply(rows, count * (elements_per_sample_ / whitener_.values()), whitened);
  SampleKey own = key != nullptr ? *key : SampleKey{};
  for (std::int64_t i = 0; i < count; ++i) {
    float* const to = out + i * step;
    float* const values = transforms_.in_place() ? to : scratch;
    std::copy_n(whitened + i * size, size, values);
    if (!transforms_.empty()) transforms_.apply(values, to, key != nullptr ? &own : nullptr, scratch);
    ++own.place;
  }
}

void Dataset::gather_whitened(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                              std::int64_t step, float* scratch) const {
  LOCKSTEP_CHECK(!whitener_.empty());
  float* const rows = scratch + transforms_.scratch_values();
  const auto together = static_cast<std::size_t>(samples_whitened_together());
  SampleKey own = key;
  for (std::size_t first = 0; first < samples.size(); first += together) {
    const auto now = samples.subspan(first, std::min(together, samples.size() - first));
    float* row = rows;
    for (const std::int64_t sample : now) {
      gather_unwhitened(sample, row);
      row += elements_per_sample_;
    }
    finish_rows(rows, std::ssize(now), training_ ? &own : nullptr, out, step, scratch);
    own.place += std::ssize(now);
    out += std::ssize(now) * step;
  }
}

void Dataset::transform_stored(const void* sample, float* out, float* scratch) const {
  LOCKSTEP_REQUIRE(
      normalize_by() == NormalizeBy::none || normalization() != nullptr, ErrorKind::config,
      "data.normalize needs the means and standard deviations of a run: write mean and std instead");
  LOCKSTEP_REQUIRE(!whiten_by_.used() || whitening() != nullptr, ErrorKind::config,
                   "data.whiten needs the numbers of a run");
  if (whiten_by_.used()) {
    float* const row = scratch + transforms_.scratch_values();
    convert(sample, row);
    return finish_rows(row, 1, nullptr, out, 0, scratch);
  }
  float* const converted = transforms_.in_place() ? out : scratch;
  convert_padded(sample, converted);
  if (!transforms_.empty()) transforms_.apply(converted, out, nullptr, scratch);
}

}  // namespace lockstep
