// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several sets as one: the samples of the first, then those of the second, and so on.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/dataset.h"
#include "data/sample_stream.h"
#include "data/table_info.h"

namespace lockstep {

namespace {

SampleRoom room_from(const SampleRoom& to, std::int64_t samples, std::int64_t sample_bytes,
                     std::int64_t columns) {
  SampleRoom room{.features = static_cast<char*>(to.features) + samples * sample_bytes};
  if (to.label_indices != nullptr) room.label_indices = to.label_indices + samples * columns;
  if (to.label_rows != nullptr) room.label_rows = to.label_rows + samples * columns;
  return room;
}

/// The values of a set in memory.
class MemoryStore final : public SampleStore {
 public:
  MemoryStore(DatasetParts parts, std::int64_t sample_bytes)
      : parts_(std::move(parts)), sample_bytes_(sample_bytes) {}
  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    std::memcpy(to.features, static_cast<const char*>(parts_.features.data()) + first * sample_bytes_,
                static_cast<std::size_t>(count * sample_bytes_));
    const std::int64_t columns = parts_.num_label_columns;
    if (to.label_indices != nullptr)
      std::copy_n(parts_.label_indices.begin() + first * columns, count * columns, to.label_indices);
    if (to.label_rows != nullptr)
      std::copy_n(parts_.label_rows.begin() + first * columns, count * columns, to.label_rows);
  }

 private:
  const DatasetParts parts_;
  const std::int64_t sample_bytes_;
};

class ChainedStore final : public SampleStore {
 public:
  ChainedStore(std::int64_t sample_bytes, std::int64_t columns)
      : sample_bytes_(sample_bytes), columns_(columns) {}

  void add(std::shared_ptr<SampleStore> store, std::int64_t samples) {
    stores_.push_back(std::move(store));
    first_.push_back(first_.back() + samples);
  }
  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(first_, first) - first_.begin()) - 1;
    for (std::int64_t done = 0; done < count; ++i) {
      const std::int64_t from = first + done, here = std::min(count - done, first_[i + 1] - from);
      stores_[i]->read(from - first_[i], here, room_from(to, done, sample_bytes_, columns_));
      done += here;
    }
  }
  std::int64_t samples_per_chunk() const override {
    std::int64_t most = 1;
    for (const auto& store : stores_) most = std::max(most, store->samples_per_chunk());
    return most;
  }
  bool has_random_access() const override {
    return std::ranges::all_of(stores_, [](const auto& store) { return store->has_random_access(); });
  }
  bool decodes_samples() const override {
    return std::ranges::any_of(stores_, [](const auto& store) { return store->decodes_samples(); });
  }

 private:
  const std::int64_t sample_bytes_, columns_;
  std::vector<std::shared_ptr<SampleStore>> stores_;
  std::vector<std::int64_t> first_{0};  ///< sample of each store, and the end
};

/// Where the samples of several sets come from.
struct ChainedOrigin {
  std::vector<std::shared_ptr<const SampleOrigin>> origins;
  std::vector<std::int64_t> first;

  std::string where(std::int64_t sample) const {
    const auto i = static_cast<std::size_t>(std::ranges::upper_bound(first, sample) - first.begin()) - 1;
    return origins[i]->where(sample - first[i]);
  }
};

}  // namespace

void Dataset::require_same_form(const Dataset& other) const {
  const auto fail = [&](const std::string& what, const char* advice) {
    throw Error(ErrorKind::data, what, other.origin_->source, advice);
  };
  if (other.parts_.feature_shape != parts_.feature_shape ||
      other.parts_.feature_dtype != parts_.feature_dtype)
    fail(fmt::format("its samples are {} {}, but those of {} are {} {}",
                     other.parts_.feature_shape.to_string(), name_of(other.parts_.feature_dtype),
                     origin_->source, parts_.feature_shape.to_string(), name_of(parts_.feature_dtype)),
         "All sources need samples of the same shape and type; lockstep convert makes them alike.");
  if (other.parts_.sequence != parts_.sequence)
    fail("its sequences are padded in another way than those of the first source",
         "Write pad_to and pad_value beside sources, for all of them.");
  if (other.label_kind_ != label_kind_ || other.parts_.num_label_columns != parts_.num_label_columns)
    fail(fmt::format("its labels are not of the form of those of {}", origin_->source),
         "All sources need labels of the same kind and number.");
  if (other.parts_.class_names != parts_.class_names)
    fail(fmt::format("its classes are not those of {}", origin_->source),
         "Give all sources the same list in the option classes.");
  const auto categories = [](const Dataset& data) {
    return data.parts_.table ? data.parts_.table->categories_text() : "";
  };
  if (categories(other) != categories(*this))
    fail(fmt::format("its categories are not those of {}", origin_->source),
         "Give all sources the same lists in the option categories.");
  const FeatureTransform &a = parts_.transform, &b = other.parts_.transform;
  if (a.scale != b.scale || a.offset != b.offset || a.mean != b.mean || a.std != b.std ||
      a.normalize != b.normalize)
    fail("is scaled in another way than the first source",
         "Write scale, offset, mean, std and normalize beside sources, for all of them.");
  if (parts_.text != nullptr || other.parts_.text != nullptr)
    fail("is a text, which is no source", "Join the texts to one file.");
  if (other.parts_.feature_step != other.elements_per_sample_)
    fail("its samples overlap", "Read samples that do not overlap (hop_bytes).");
}

std::unique_ptr<Dataset> Dataset::chain(std::vector<std::unique_ptr<Dataset>> sets) {
  LOCKSTEP_CHECK(!sets.empty());
  const Dataset& front = *sets.front();
  for (const std::unique_ptr<Dataset>& set : sets) front.require_same_form(*set);
  const std::int64_t bytes = front.sample_bytes();
  DatasetParts parts;
  parts.source = front.origin_->source;
  parts.record_word = front.origin_->record_word;
  parts.feature_shape = front.parts_.feature_shape;
  parts.feature_dtype = front.parts_.feature_dtype;
  parts.num_label_columns = front.parts_.num_label_columns;
  parts.label_kind = front.label_kind_;
  parts.class_names = front.parts_.class_names;
  parts.table = front.parts_.table;
  parts.transform = front.parts_.transform;
  parts.sequence = front.parts_.sequence;
  parts.knows_bad = std::ranges::all_of(sets, [](const auto& set) { return set->knows_bad_records(); });
  ChainedOrigin origin;
  auto store = std::make_shared<ChainedStore>(bytes, parts.num_label_columns);
  for (const std::unique_ptr<Dataset>& set : sets) {
    LOCKSTEP_CHECK(set->stream_ == nullptr && set->inputs_.empty());
    std::vector<DatasetFile> files = set->origin_->files;
    if (files.empty()) files.push_back({set->origin_->source, 0, set->origin_->first_record});
    for (const DatasetFile& file : files)
      parts.files.push_back({file.name, parts.size + file.first_sample, file.first_record});
    for (BadRecord record : set->parts_.bad) {
      record.sample += parts.size;
      parts.bad.push_back(std::move(record));
    }
    origin.origins.push_back(set->origin_);
    origin.first.push_back(parts.size);
    const std::int64_t samples = set->parts_.size;
    store->add(set->values_.features == nullptr
                   ? set->parts_.store
                   : std::make_shared<MemoryStore>(std::move(set->parts_), bytes),
               samples);
    parts.size += samples;
  }
  parts.name = [origin = std::move(origin)](std::int64_t sample) { return origin.where(sample); };
  parts.store = std::move(store);
  return std::make_unique<Dataset>(std::move(parts));
}

}  // namespace lockstep
