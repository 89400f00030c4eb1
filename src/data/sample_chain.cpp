// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_chain.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
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

void require_same_form(const OpenedSamples& first, const OpenedSamples& second) {
  const DatasetParts &is = first.parts(), &other = second.parts();
  const auto fail = [&](const std::string& what, const char* advice) {
    throw Error(ErrorKind::data, what, second.source(), advice);
  };
  if (other.feature_shape != is.feature_shape || other.feature_dtype != is.feature_dtype)
    fail(fmt::format("its samples are {} {}, but those of {} are {} {}", other.feature_shape.to_string(),
                     name_of(other.feature_dtype), first.source(), is.feature_shape.to_string(),
                     name_of(is.feature_dtype)),
         "All sources need samples of the same shape and type; lockstep convert makes them alike.");
  if (other.sequence != is.sequence)
    fail("its sequences are padded in another way than those of the first source",
         "Write pad_to and pad_value beside sources, for all of them.");
  if (other.label_kind != is.label_kind || other.num_label_columns != is.num_label_columns)
    fail(fmt::format("its labels are not of the form of those of {}", first.source()),
         "All sources need labels of the same kind and number.");
  if (other.class_names != is.class_names)
    fail(fmt::format("its classes are not those of {}", first.source()),
         "Give all sources the same list in the option classes.");
  const auto categories = [](const DatasetParts& parts) {
    return parts.table ? parts.table->categories_text() : "";
  };
  if (categories(other) != categories(is))
    fail(fmt::format("its categories are not those of {}", first.source()),
         "Give all sources the same lists in the option categories.");
  const FeatureTransform &a = is.transform, &b = other.transform;
  if (a.scale != b.scale || a.offset != b.offset || a.mean != b.mean || a.std != b.std ||
      a.normalize != b.normalize)
    fail("is scaled in another way than the first source",
         "Write scale, offset, mean, std and normalize beside sources, for all of them.");
  if (is.text != nullptr || other.text != nullptr)
    fail("is a text, which is no source", "Join the texts to one file.");
  if (other.feature_step != other.values_per_sample())
    fail("its samples overlap", "Read samples that do not overlap (hop_bytes).");
}

}  // namespace

OpenedSamples chained(std::vector<OpenedSamples> sets) {
  LOCKSTEP_CHECK(!sets.empty());
  const OpenedSamples& front = sets.front();
  for (const OpenedSamples& set : sets) require_same_form(front, set);
  const std::int64_t bytes = front.parts().sample_bytes();
  DatasetParts parts;
  static_cast<StoredForm&>(parts) = front.parts();
  parts.size = 0;
  parts.source = front.source();
  parts.record_word = front.origin()->record_word;
  parts.class_names = front.parts().class_names;
  parts.table = front.parts().table;
  parts.transform = front.parts().transform;
  parts.sequence = front.parts().sequence;
  parts.knows_bad = std::ranges::all_of(sets, [](const auto& set) { return set.knows_bad_records(); });
  ChainedOrigin origin;
  auto store = std::make_shared<ChainedStore>(bytes, parts.num_label_columns);
  for (OpenedSamples& set : sets) {
    std::vector<DatasetFile> files = set.origin()->files;
    if (files.empty()) files.push_back({set.source(), 0, set.origin()->first_record});
    for (const DatasetFile& file : files)
      parts.files.push_back({file.name, parts.size + file.first_sample, file.first_record});
    for (BadRecord record : set.parts().bad) {
      record.sample += parts.size;
      parts.bad.push_back(std::move(record));
    }
    origin.origins.push_back(set.origin());
    origin.first.push_back(parts.size);
    const std::int64_t samples = set.size();
    std::shared_ptr<SampleStore> of_set = set.parts().store;
    if (set.in_memory()) of_set = std::make_shared<MemoryStore>(std::move(set).take_parts(), bytes);
    store->add(std::move(of_set), samples);
    parts.size += samples;
  }
  parts.name = [origin = std::move(origin)](std::int64_t sample) { return origin.where(sample); };
  parts.store = std::move(store);
  return OpenedSamples(std::move(parts));
}

}  // namespace lockstep
