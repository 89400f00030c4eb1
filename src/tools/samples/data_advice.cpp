// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/samples/data_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/samples/feature_names.h"

namespace lockstep {

namespace {

/// Values beyond these make the first layers learn slowly.
constexpr double kFarMean = 2, kLargeDeviation = 5, kSmallDeviation = 0.05;
constexpr std::int64_t kUneven = 10;
constexpr std::int64_t kLargeBlock = std::int64_t{32} << 20;

const char* name_of_set(bool training) { return training ? "the training set" : "the evaluation set"; }

}  // namespace

void DataFindings::add_values(bool training, const FeatureStatistics& features,
                              const std::vector<std::string>& names) {
  const ValueStatistics& all = features.all;
  if (all.deviation == 0) {
    lines_.push_back(fmt::format("all values of {} are {:.4g}.", name_of_set(training), all.mean));
    return;
  }
  for (std::size_t c = 0; c < features.channels.size(); ++c)
    if (features.channels[c].deviation == 0)
      lines_.push_back(fmt::format("{} of {} is {:.4g} everywhere.", channel_name(names, c),
                                   name_of_set(training), features.channels[c].mean));
  if (!training) return;
  if (std::abs(all.mean) <= kFarMean && all.deviation <= kLargeDeviation && all.deviation >= kSmallDeviation)
    return;
  lines_.push_back(fmt::format(
      "the values that the model gets have mean {:.4g} and standard deviation {:.4g}. If they are "
      "no class numbers or tokens, normalise them: normalize: channels in section data.",
      all.mean, all.deviation));
}

void DataFindings::add_labels(bool training, const LabelStatistics& labels) {
  if (training) train_labels_ = labels;
  if (labels.counts.empty()) return;
  if (!training) {
    for (const auto& [label, count] : labels.counts)
      if (!train_labels_.counts.contains(label))
        lines_.push_back(
            fmt::format("class {} occurs in the evaluation set, but not in the training set.", label));
    return;
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [rarest, commonest] = std::minmax_element(labels.counts.begin(), labels.counts.end(), by_count);
  if (commonest->second >= kUneven * rarest->second)
    lines_.push_back(
        fmt::format("class {} has {} samples, class {} has {}: accuracy says little about the rare class.",
                    commonest->first, commonest->second, rarest->first, rarest->second));
  const std::int64_t last = labels.counts.rbegin()->first;
  std::vector<std::int64_t> missing;
  for (std::int64_t label = 0; label < last && missing.size() < 5; ++label)
    if (!labels.counts.contains(label)) missing.push_back(label);
  if (!missing.empty())
    lines_.push_back(fmt::format("no sample that was looked at has class {}{}, but there is class {}.",
                                 fmt::join(missing, ", "), missing.size() == 5 ? " and more" : "", last));
}

void DataFindings::add_reading(bool training, const ReaderDataset& data) {
  if (data.stream() == nullptr) return;
  const std::int64_t block = data.size_bytes() / data.size() * data.blocks().block_samples();
  if (block > kLargeBlock)
    lines_.push_back(fmt::format(
        "{} is read in blocks of {:.0f} MB ({} samples): smaller chunks in the file need less memory "
        "and mix better.",
        name_of_set(training), static_cast<double>(block) * 1e-6, data.blocks().block_samples()));
}

void DataFindings::add(std::vector<std::string> lines) {
  for (std::string& line : lines)
    if (std::ranges::find(lines_, line) == lines_.end()) lines_.push_back(std::move(line));
}

void DataFindings::add_equal(const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
                             const Dataset& train, const Dataset& eval) {
  if (pairs.empty()) return;
  lines_.push_back(
      fmt::format("{} samples of the evaluation set are in the training set, too, for example {} and {}: the "
                  "evaluation looks better than it is.",
                  pairs.size(), eval.where(pairs[0].second), train.where(pairs[0].first)));
}

}  // namespace lockstep
