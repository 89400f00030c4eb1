// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/class_lists.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/range.h"
#include "data/dataset.h"

namespace lockstep {

ClassLists::ClassLists(std::span<const std::int32_t> labels, const SampleChoice* choice) {
  LOCKSTEP_REQUIRE(std::ssize(labels) <= std::numeric_limits<std::uint32_t>::max(), ErrorKind::config,
                   "{} samples are too many for lists by class", labels.size());
  const std::int64_t size = choice != nullptr ? choice->size() : std::ssize(labels);
  const auto sample_at = [&](std::int64_t i) {
    return static_cast<std::size_t>(choice != nullptr ? choice->at(i) : i);
  };
  std::map<std::int32_t, std::size_t> counts;
  for (std::int64_t i = 0; i < size; ++i) ++counts[labels[sample_at(i)]];
  std::map<std::int32_t, std::size_t> next;
  std::size_t first = 0;
  for (const auto& [label, count] : counts) {
    labels_.push_back(label);
    first_.push_back(first);
    next[label] = first;
    first += count;
  }
  first_.push_back(first);
  samples_.resize(first);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::size_t sample = sample_at(i);
    samples_[next[labels[sample]]++] = static_cast<std::uint32_t>(sample);
  }
}

std::vector<std::int32_t> class_labels(const Dataset& data) {
  if (data.label_kind() != LabelKind::indices || data.num_label_columns() != 1)
    throw Error(ErrorKind::data, "samples do not have one class each, which balance and split_by_class need",
                data.where(0), "Leave these options out, or name the labels that are class numbers.");
  std::vector<std::int32_t> labels(static_cast<std::size_t>(data.size()));
  const BlockGrid blocks = data.blocks();
  std::vector<std::int64_t> samples;
  for (std::int64_t block = 0; block < blocks.num_blocks(); ++block) {
    const Range range = blocks.samples(block);
    samples.resize(static_cast<std::size_t>(range.size()));
    std::iota(samples.begin(), samples.end(), range.first);
    data.gather_labels(samples, labels.data() + range.first);
  }
  return labels;
}

}  // namespace lockstep
