// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/good_samples.h"

#include <algorithm>
#include <cstring>

#include "core/device.h"
#include "core/error.h"
#include "data/table_info.h"

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

/// Where the good ones of the samples that `origin` describes come from.
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

void keep_keys(DatasetParts& parts, const GoodSamples& good) {
  if (parts.table == nullptr || parts.table->keys.empty()) return;
  auto table = std::make_shared<TableInfo>(*parts.table);
  table->keys.clear();
  for (std::int64_t i = 0; i < good.size(); ++i)
    table->keys.push_back(parts.table->keys[static_cast<std::size_t>(good.at(i))]);
  parts.table = std::move(table);
}

/// Of values in memory.
void keep_values(DatasetParts& parts, const GoodSamples& good) {
  const std::int64_t bytes = parts.sample_bytes(), columns = parts.num_label_columns;
  Buffer features(cpu_device(), static_cast<std::size_t>(good.size() * bytes));
  for (std::int64_t i = 0; i < good.size();) {
    const std::int64_t from = good.at(i), count = good.run_from(i);
    std::memcpy(static_cast<char*>(features.data()) + i * bytes,
                static_cast<const char*>(parts.features.data()) + from * bytes,
                static_cast<std::size_t>(count * bytes));
    const auto move = [&](auto& labels) {
      if (!labels.empty())
        std::copy_n(labels.begin() + from * columns, count * columns, labels.begin() + i * columns);
    };
    move(parts.label_indices);
    move(parts.label_rows);
    i += count;
  }
  parts.features = std::move(features);
  const auto labels = static_cast<std::size_t>(good.size() * columns);
  if (!parts.label_indices.empty()) parts.label_indices.resize(labels);
  if (!parts.label_rows.empty()) parts.label_rows.resize(labels);
}

}  // namespace

OpenedSamples leave_out(OpenedSamples set, std::vector<BadRecord> bad,
                        const std::vector<std::int64_t>& samples) {
  LOCKSTEP_CHECK(set.parts().num_left_out == 0);
  if (samples.empty()) return set;
  if (set.parts().has_overlap())
    throw Error(ErrorKind::config, "its samples overlap, and none can be left out for a bad record",
                set.source(), "Write bad_records: stop, or remove the bad records from the other inputs.");
  if (std::ssize(samples) == set.size())
    throw Error(ErrorKind::data,
                bad.empty()
                    ? "all of its records are bad in other inputs"
                    : fmt::format("all of its {} records are bad: {}", set.size(), bad.front().reason),
                set.source(), "Check the reader's options.");
  const GoodSamples good(set.size(), samples);
  const bool in_memory = set.in_memory();
  const std::shared_ptr<const SampleOrigin> origin = set.origin();
  DatasetParts parts = std::move(set).take_parts();
  static_cast<SampleOrigin&>(parts) = good_origin(origin, good);
  parts.left_out = std::move(bad);
  parts.num_left_out = std::ssize(samples);
  if (parts.store)
    parts.store =
        std::make_shared<GoodSampleStore>(parts.store, good, parts.sample_bytes(), parts.num_label_columns);
  if (in_memory) keep_values(parts, good);
  keep_keys(parts, good);
  parts.size = good.size();
  return OpenedSamples(std::move(parts));
}

}  // namespace lockstep
