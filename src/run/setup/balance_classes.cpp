// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/balance_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/log.h"
#include "core/name_list.h"
#include "core/range.h"
#include "model/class_balance.h"
#include "session/run_class_counts.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "class counts";
constexpr std::int64_t kTogether = 1024;  // samples that are read at once

using Counts = std::vector<std::int64_t>;

/// The labels of a chunk of samples, in the form that the loss of a head takes.
class LabelReader {
 public:
  LabelReader(const Heads& heads, int head, const Dataset& data)
      : heads_(heads), head_(head), data_(data), columns_(data.num_label_columns()) {
    const auto values = static_cast<std::size_t>(kTogether * columns_);
    if (data.label_kind() == LabelKind::indices)
      indices_.resize(values);
    else
      rows_.resize(values);
    block_.resize(static_cast<std::size_t>(kTogether * heads.label_words()));
  }
  Labels read(std::span<const std::int64_t> samples) {
    Labels all{.columns = columns_};
    if (!indices_.empty()) {
      data_.gather_labels(samples, indices_.data());
      all.indices = indices_.data();
    } else {
      data_.gather_labels(samples, rows_.data());
      all.rows = rows_.data();
    }
    const auto n = std::ssize(samples);
    return heads_.labels_of(head_, heads_.arrange(all, n, block_.data()), n);
  }

 private:
  const Heads& heads_;
  int head_;
  const Dataset& data_;
  std::int64_t columns_;
  std::vector<std::int32_t> indices_, block_;
  std::vector<float> rows_;
};

/// The labels of a rank's part of the samples.
Counts counts_of(const Heads& heads, int number, const UsedDataset& train, const Range& part) {
  const Head& head = heads[number];
  const std::int64_t classes = head.shape.last(), positions = head.loss->positions(head.shape);
  Counts counts(static_cast<std::size_t>(classes));
  LabelReader reader(heads, number, *train);
  std::vector<std::int64_t> samples;
  for (std::int64_t first = part.first; first < part.last; first += kTogether) {
    samples.clear();
    for (std::int64_t i = first; i < std::min(first + kTogether, part.last); ++i)
      samples.push_back(train.use().choice != nullptr ? train.use().choice->at(i) : i);
    const Labels labels = reader.read(samples);
    if (labels.indices == nullptr)
      throw Error(
          ErrorKind::config,
          fmt::format("{}class_weights: balanced counts class indices, but the labels are rows of values",
                      head.prefix()),
          head.where, "Give a weight for each class: class_weights: [1, 2].");
    for (std::int64_t i = 0; i < std::ssize(samples) * positions; ++i) {
      const std::int32_t label = labels.indices[i];
      if (label == Loss::kIgnoredIndex) continue;
      if (label < 0 || label >= classes)
        throw Error(ErrorKind::data, fmt::format("the label {} is none of {} classes", label, classes),
                    train->where(samples[static_cast<std::size_t>(i / positions)]));
      ++counts[static_cast<std::size_t>(label)];
    }
  }
  return counts;
}

Counts counted(Communicator& world, const Heads& heads, int number, const UsedDataset& train) {
  const std::int64_t samples = train.num_chosen(), rank = world.rank(), ranks = world.size();
  Counts mine(static_cast<std::size_t>(heads[number].shape.last()));
  agree(
      world,
      [&] {
        mine = counts_of(heads, number, train, {samples * rank / ranks, samples * (rank + 1) / ranks});
      },
      "counting the labels of the training set");
  Counts all(mine.size() * static_cast<std::size_t>(ranks)), sums(mine.size());
  world.allgather(mine.data(), mine.size() * sizeof(std::int64_t), all.data(), kWhat);
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
  return sums;
}

/// Those that the run keeps, read by the chief; empty: it keeps none.
Counts kept_counts(Communicator& world, const Head& head, const RunNeeds& needs) {
  Counts counts;
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        counts = kept_class_counts(needs.kept_in, head.name, needs.kept.get()).value_or(Counts());
        if (!counts.empty() && std::ssize(counts) != head.shape.last())
          throw Error(ErrorKind::data,
                      fmt::format("has {} classes, but the model has {}", counts.size(), head.shape.last()),
                      class_counts_path(needs.kept_in, head.name));
      },
      "reading the class counts");
  std::int64_t size = std::ssize(counts);
  world.broadcast(&size, sizeof size, 0, kWhat);
  counts.resize(static_cast<std::size_t>(size));
  if (size > 0) world.broadcast(counts.data(), counts.size() * sizeof(std::int64_t), 0, kWhat);
  return counts;
}

void say(const Head& head, const Counts& counts) {
  std::vector<std::string> weights, absent;
  const std::vector<double> all = balanced_weights(counts);
  for (std::size_t i = 0; i < all.size(); ++i) {
    weights.push_back(fmt::format("{:.4g}", all[i]));
    if (counts[i] == 0) absent.push_back(std::to_string(i));
  }
  log_info("{}class weights, balanced: {}", head.prefix(), name_list(weights));
  if (!absent.empty())
    log_warning("{}the training set has no label of class {}; its weight is 1", head.prefix(),
                name_list(absent));
}

}  // namespace

void balance_classes(Communicator& world, const Heads& heads, const UsedDataset& train, const RunNeeds& needs,
                     Device& device) {
  for (int number = 0; number < heads.size(); ++number) {
    const Head& head = heads[number];
    auto* const balance = dynamic_cast<ClassBalance*>(head.loss.get());
    if (balance == nullptr || !balance->balances_classes()) continue;
    Counts counts = needs.kept_in.empty() ? Counts() : kept_counts(world, head, needs);
    if (counts.empty()) {
      if (!train)
        throw SharedError(Error(
            ErrorKind::data,
            fmt::format("{}the run has no class counts, which class_weights: balanced needs", head.prefix()),
            class_counts_path(needs.kept_in, head.name),
            "Restore the file, or give a weight for each class: class_weights: [1, 2]."));
      counts = counted(world, heads, number, train);
      if (world.rank() == 0) say(head, counts);
    }
    balance->balance(device, std::move(counts));
  }
}

void compare_class_counts(Communicator& world, const Heads& heads, const UsedDataset& train) {
  for (int number = 0; number < heads.size(); ++number) {
    const Head& head = heads[number];
    const auto* const balance = dynamic_cast<const ClassBalance*>(head.loss.get());
    if (balance == nullptr || !balance->balances_classes()) continue;
    const Counts now = counted(world, heads, number, train);
    const std::span<const std::int64_t> kept = balance->class_counts();
    std::vector<std::string> others;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (kept[i] != now[i]) others.push_back(fmt::format("class {}: {}, kept {}", i, now[i], kept[i]));
    if (others.empty() || world.rank() != 0) continue;
    log_warning(
        "{}class_weights: balanced keeps the class counts with which the run began, but the training set has "
        "others ({}); begin another run to weigh classes by them",
        head.prefix(), name_list(others));
  }
}

}  // namespace lockstep
