// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/reader_dataset.h"

#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "data/text_info.h"

namespace lockstep {

ReaderDataset::ReaderDataset(std::shared_ptr<const StoredSamples> samples)
    : samples_(std::move(samples)),
      stages_(samples_->parts(), samples_->source()),
      text_(samples_->parts().text),
      fingerprint_(samples_->fingerprint()) {}

ReaderDataset::ReaderDataset(DatasetParts parts, const DatasetMemory& memory)
    : ReaderDataset(std::make_shared<const StoredSamples>(OpenedSamples(std::move(parts)), memory)) {}

ReaderDataset ReaderDataset::with_whitening(const WhitenOptions& options) const {
  ReaderDataset set = *this;
  set.stages_ = stages_.with_whitening(options);
  return set;
}

ReaderDataset ReaderDataset::with_transforms(TransformList transforms, bool training) const {
  ReaderDataset set = *this;
  set.stages_ = stages_.with_transforms(std::make_shared<TransformList>(std::move(transforms)), training);
  if (auto text = set.stages_.transforms().text(); text != nullptr && text != text_) {
    set.text_ = std::move(text);
    Digest digest;
    digest.add(std::string_view(fingerprint_)).add(std::string_view(set.text_->digest()));
    set.fingerprint_ = digest.hex().substr(0, 16);
  }
  return set;
}

ReaderDataset ReaderDataset::fitted(const StageNumbers& numbers) const {
  ReaderDataset set = *this;
  set.stages_ = stages_.fitted(numbers);
  return set;
}

const SequenceForm* ReaderDataset::sequence() const {
  const std::optional<SequenceForm>& form = stored().parts().sequence;
  return form ? &*form : nullptr;
}

void ReaderDataset::gather_scaled(std::int64_t sample, float* out) const {
  LOCKSTEP_CHECK(stages_.conversion().only_scales());
  gather_unwhitened(sample, out);
}

void ReaderDataset::gather_unwhitened(std::int64_t sample, float* out) const {
  stored().with_sample(
      sample, [&](const SampleValues& values) { stages_.conversion().convert(values.features, out); });
}

void ReaderDataset::transform_stored(const void* sample, float* out, float* scratch) const {
  LOCKSTEP_REQUIRE(
      stages_.conversion().is_complete(), ErrorKind::config,
      "data.normalize needs the means and standard deviations of a run: write mean and std instead");
  LOCKSTEP_REQUIRE(stages_.whitening().is_complete(), ErrorKind::config,
                   "data.whiten needs the numbers of a run");
  if (!stages_.whitening().options().used()) return stages_.apply(sample, nullptr, out, scratch);
  stages_.conversion().convert(sample, stages_.rows_in(scratch));
  stages_.apply_to_rows(1, nullptr, out, 0, scratch);
}

std::shared_ptr<const Dataset> ReaderDataset::with_parts(
    std::vector<std::shared_ptr<const ReaderDataset>> parts) const {
  LOCKSTEP_CHECK(parts.size() == 1);
  return parts[0] != nullptr ? parts[0] : std::make_shared<const ReaderDataset>(*this);
}

void ReaderDataset::gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                                    std::int64_t step, float* scratch) const {
  LOCKSTEP_CHECK(stages_.are_fitted());
  if (stages_.whitening().options().used()) return gather_whitened(samples, key, out, step, scratch);
  SampleKey own = key;
  for (const std::int64_t sample : samples) {
    stored().with_sample(sample, [&](const SampleValues& values) {
      try {
        stages_.apply(values.features, stages_.acting(own), out, scratch);
      } catch (const Error& error) {
        if (!error.where().empty()) throw;
        throw Error(error.kind(), error.what_happened(), where(sample), error.advice());
      }
    });
    ++own.place;
    out += step;
  }
}

void ReaderDataset::gather_whitened(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                                    std::int64_t step, float* scratch) const {
  const auto together = static_cast<std::size_t>(stages_.whitening().samples_together());
  SampleKey own = key;
  for (std::size_t first = 0; first < samples.size(); first += together) {
    const auto now = samples.subspan(first, std::min(together, samples.size() - first));
    float* row = stages_.rows_in(scratch);
    for (const std::int64_t sample : now) {
      gather_unwhitened(sample, row);
      row += stored_shape().num_elements();
    }
    stages_.apply_to_rows(std::ssize(now), stages_.acting(own), out, step, scratch);
    own.place += std::ssize(now);
    out += std::ssize(now) * step;
  }
}

void ReaderDataset::gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const {
  LOCKSTEP_CHECK(label_kind() == LabelKind::indices, "{} has no class indices", stored().source());
  for (const std::int64_t sample : samples)
    stored().with_sample(sample, [&](const SampleValues& values) {
      out = std::copy_n(values.label_indices, num_label_columns(), out);
    });
}

void ReaderDataset::gather_labels(std::span<const std::int64_t> samples, const SampleKey& /*key*/, float* out,
                                  float* /*scratch*/) const {
  LOCKSTEP_CHECK(label_kind() != LabelKind::none, "{} has no labels", stored().source());
  for (const std::int64_t sample : samples)
    stored().with_sample(sample, [&](const SampleValues& values) {
      if (label_kind() == LabelKind::rows)
        out = std::copy_n(values.label_rows, num_label_columns(), out);
      else
        out = std::transform(values.label_indices, values.label_indices + num_label_columns(), out,
                             [](std::int32_t label) { return static_cast<float>(label); });
    });
}

std::vector<SampleStream*> ReaderDataset::streams() const {
  if (stream() == nullptr) return {};
  return {stream()};
}

void ReaderDataset::check_labels(const LabelDemand& demand) const {
  if (label_kind() == LabelKind::none)
    throw Error(ErrorKind::data, "has no labels", stored().source(),
                "Name the labels in the reader's options.");
  stored().check_labels(demand);
}

}  // namespace lockstep
