// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/good_samples.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

GoodSamples::GoodSamples(std::int64_t num_samples, const std::vector<std::int64_t>& bad)
    : size_(num_samples - std::ssize(bad)) {
  LOCKSTEP_CHECK(size_ >= 0);
  next_good_.reserve(bad.size());
  for (std::size_t k = 0; k < bad.size(); ++k) {
    LOCKSTEP_CHECK(bad[k] >= 0 && bad[k] < num_samples && (k == 0 || bad[k] > bad[k - 1]));
    next_good_.push_back(bad[k] - static_cast<std::int64_t>(k));
  }
}

std::int64_t GoodSamples::bad_before(std::int64_t i) const {
  return std::ranges::upper_bound(next_good_, i) - next_good_.begin();
}

std::int64_t GoodSamples::run_from(std::int64_t i) const {
  const auto next = std::ranges::upper_bound(next_good_, i);
  return (next == next_good_.end() ? size_ : *next) - i;
}

namespace {

class GoodSampleStore final : public SampleStore {
 public:
  GoodSampleStore(std::shared_ptr<SampleStore> store, GoodSamples good, std::int64_t sample_bytes,
                  std::int64_t label_columns)
      : store_(std::move(store)),
        good_(std::move(good)),
        sample_bytes_(sample_bytes),
        label_columns_(label_columns) {}

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t here = std::min(count - done, good_.run_from(first + done));
      SampleRoom room = to;
      room.features = static_cast<char*>(to.features) + done * sample_bytes_;
      if (to.label_indices != nullptr) room.label_indices += done * label_columns_;
      if (to.label_rows != nullptr) room.label_rows += done * label_columns_;
      store_->read(good_.at(first + done), here, room);
      done += here;
    }
  }
  std::int64_t samples_per_chunk() const override { return store_->samples_per_chunk(); }
  bool has_random_access() const override { return store_->has_random_access(); }
  bool decodes_samples() const override { return store_->decodes_samples(); }

 private:
  const std::shared_ptr<SampleStore> store_;
  const GoodSamples good_;
  const std::int64_t sample_bytes_, label_columns_;
};

}  // namespace

std::shared_ptr<SampleStore> good_samples_of(std::shared_ptr<SampleStore> store, GoodSamples good,
                                             std::int64_t sample_bytes, std::int64_t label_columns) {
  return std::make_shared<GoodSampleStore>(std::move(store), std::move(good), sample_bytes, label_columns);
}

SampleOrigin good_origin(std::shared_ptr<const SampleOrigin> origin, const GoodSamples& good) {
  SampleOrigin made{.source = origin->source, .record_word = origin->record_word};
  std::vector<DatasetFile> files = origin->files;
  if (files.empty()) files.push_back({origin->source, 0, origin->first_record});
  for (std::int64_t i = 0; i < good.size();) {
    const std::int64_t sample = good.at(i);
    const auto next = std::ranges::upper_bound(files, sample, {}, &DatasetFile::first_sample);
    const DatasetFile& file = *std::prev(next);
    made.files.push_back({file.name, i, file.first_record + sample - file.first_sample});
    std::int64_t here = good.run_from(i);
    if (next != files.end()) here = std::min(here, next->first_sample - sample);
    i += here;
  }
  if (origin->name || !origin->records.empty())
    made.name = [origin = std::move(origin), good](std::int64_t sample) {
      return origin->where(good.at(sample));
    };
  return made;
}

}  // namespace lockstep
