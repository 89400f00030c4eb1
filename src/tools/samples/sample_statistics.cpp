// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/samples/sample_statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "core/hash.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostChannels = 16;

/// Welford's sums: exact enough for any number of values far from zero.
class Moments {
 public:
  void add(double value) {
    least_ = count_ == 0 ? value : std::min(least_, value);
    most_ = count_ == 0 ? value : std::max(most_, value);
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (value - mean_);
  }
  void add(const Moments& other) {
    if (other.count_ == 0) return;
    const double count = static_cast<double>(count_), more = static_cast<double>(other.count_);
    least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
    most_ = count_ == 0 ? other.most_ : std::max(most_, other.most_);
    const double delta = other.mean_ - mean_;
    squares_ += other.squares_ + delta * delta * count * more / (count + more);
    mean_ += delta * more / (count + more);
    count_ += other.count_;
  }
  ValueStatistics values() const {
    return {least_, most_, mean_, count_ > 0 ? std::sqrt(squares_ / static_cast<double>(count_)) : 0};
  }

 private:
  std::int64_t count_ = 0;
  double least_ = 0, most_ = 0, mean_ = 0, squares_ = 0;
};

/// Calls use(sample, features) for the features of each sample.
void for_each_sample(const Dataset& data, std::span<const std::int64_t> samples, std::uint64_t seed,
                     const std::function<void(std::int64_t, const std::vector<float>&)>& use) {
  std::vector<float> values(static_cast<std::size_t>(data.feature_shape().num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
  for (const std::int64_t sample : samples) {
    data.gather_features({&sample, 1}, {.seed = seed, .place = sample}, values.data(), scratch.data());
    use(sample, values);
  }
}

}  // namespace

std::vector<std::int64_t> spread_samples(const UsedDataset& data, std::int64_t most) {
  const std::int64_t used = data.num_chosen(), count = std::min(most, used);
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(static_cast<double>(i) * static_cast<double>(used) /
                                                 static_cast<double>(count));
    samples.push_back(data.use().choice != nullptr ? data.use().choice->at(index) : index);
  }
  return samples;
}

FeatureStatistics feature_statistics(const ReaderDataset& data, std::span<const std::int64_t> samples,
                                     std::uint64_t seed) {
  const Shape& shape = data.feature_shape();
  // Padding is no value, as long as it is still there.
  const bool padded =
      data.sequence() != nullptr && data.sequence()->ends_in_nan() && shape == data.stored_shape();
  const std::int64_t channels = padded && shape.rank() == 1 ? 1 : shape.last();
  std::vector<Moments> moments(channels <= kMostChannels ? static_cast<std::size_t>(channels) : 1);
  for_each_sample(data, samples, seed, [&](std::int64_t sample, const std::vector<float>& values) {
    std::size_t used = values.size();
    if (padded)
      used =
          used / static_cast<std::size_t>(shape[0]) * static_cast<std::size_t>(data.sequence_length(sample));
    for (std::size_t i = 0; i < used; ++i) moments[i % moments.size()].add(static_cast<double>(values[i]));
  });
  FeatureStatistics statistics;
  Moments all;
  for (const Moments& channel : moments) {
    all.add(channel);
    if (moments.size() > 1) statistics.channels.push_back(channel.values());
  }
  statistics.all = all.values();
  return statistics;
}

LabelStatistics label_statistics(const Dataset& data, std::span<const std::int64_t> samples) {
  LabelStatistics statistics{.columns = data.num_label_columns()};
  if (data.label_kind() == LabelKind::none) return statistics;
  std::vector<float> row(static_cast<std::size_t>(statistics.columns));
  const bool classes = data.label_kind() == LabelKind::indices && statistics.columns == 1;
  Moments moments;
  for (const std::int64_t sample : samples) {
    if (classes) {
      std::int32_t label = 0;
      data.gather_labels({&sample, 1}, &label);
      ++statistics.counts[label];
      continue;
    }
    data.gather_labels({&sample, 1}, row.data());
    for (const float value : row) moments.add(static_cast<double>(value));
  }
  statistics.values = moments.values();
  return statistics;
}

LabelStatistics target_statistics(const Dataset& target, std::span<const std::int64_t> samples) {
  constexpr std::size_t kMostClasses = 1000;
  LabelStatistics statistics{.columns = target.feature_shape().num_elements()};
  if (statistics.columns != 1) return statistics;
  bool classes = true;
  for_each_sample(target, samples, 0, [&](std::int64_t, const std::vector<float>& values) {
    classes = classes && values[0] >= 0 && values[0] == std::floor(values[0]) &&
              statistics.counts.size() <= kMostClasses;
    if (classes) ++statistics.counts[static_cast<std::int64_t>(values[0])];
  });
  if (!classes) statistics.counts.clear();
  return statistics;
}

std::vector<std::pair<std::int64_t, std::int64_t>> equal_samples(const Dataset& first,
                                                                 std::span<const std::int64_t> of_first,
                                                                 const Dataset& second,
                                                                 std::span<const std::int64_t> of_second) {
  const auto digest_of = [](const std::vector<float>& values) {
    Digest digest;
    digest.add(values.data(), values.size() * sizeof(float));
    return digest.hex();
  };
  std::unordered_map<std::string, std::int64_t> known;
  for_each_sample(first, of_first, 0, [&](std::int64_t sample, const std::vector<float>& values) {
    known.emplace(digest_of(values), sample);
  });
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for_each_sample(second, of_second, 0, [&](std::int64_t sample, const std::vector<float>& values) {
    if (const auto found = known.find(digest_of(values)); found != known.end())
      pairs.emplace_back(found->second, sample);
  });
  return pairs;
}

}  // namespace lockstep
