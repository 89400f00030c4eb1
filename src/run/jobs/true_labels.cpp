// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/true_labels.h"

#include <algorithm>
#include <tuple>

namespace lockstep {

namespace {

/// The columns [first, last) of n rows.
template <typename T>
void take_columns(const std::vector<T>& rows, std::int64_t columns, std::int64_t first, std::int64_t last,
                  std::int64_t n, std::vector<T>& out) {
  out.resize(static_cast<std::size_t>(n * (last - first)));
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(rows.begin() + i * columns + first, last - first, out.begin() + i * (last - first));
}

}  // namespace

TrueLabels::TrueLabels(const Dataset& input, const Dataset& trained, const Heads& heads)
    : input_(input), heads_(static_cast<std::size_t>(heads.size())), units_(output_units(trained, heads)) {
  const std::int64_t columns = input.num_label_columns();
  if (columns == 0) return;
  if (columns != trained.num_label_columns())
    throw Error(ErrorKind::data,
                fmt::format("has {} labels per sample, but the training data has {}", columns,
                            trained.num_label_columns()),
                input.where(0), "Give samples with the labels of the training data, or without labels.");
  const bool indices = input.label_kind() == LabelKind::indices && trained.label_kind() == LabelKind::indices;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads[static_cast<int>(i)];
    std::tie(heads_[i].first, heads_[i].last) = heads.columns_of(head, columns);
    heads_[i].as_indices =
        indices && (head.loss->predictions() == PredictionKind::classes || !head.table.empty());
  }
}

void TrueLabels::describe(int head, PredictedHead& described) const {
  const OfHead& own = heads_[static_cast<std::size_t>(head)];
  described.labels = own.last - own.first;
  described.labels_are_indices = own.as_indices;
}

void TrueLabels::gather(std::span<const std::int64_t> samples) {
  const std::int64_t columns = input_.num_label_columns();
  if (columns == 0) return;
  const std::int64_t count = std::ssize(samples);
  const auto all = static_cast<std::size_t>(count * columns);
  const auto wants = [&](bool indices) {
    return std::any_of(heads_.begin(), heads_.end(), [&](const OfHead& head) {
      return head.last > head.first && head.as_indices == indices;
    });
  };
  if (wants(true)) {
    all_indices_.resize(all);
    input_.gather_labels(samples, all_indices_.data());
  }
  if (wants(false)) {
    all_values_.resize(all);
    input_.gather_labels(samples, all_values_.data());
  }
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    OfHead& head = heads_[i];
    if (head.first == head.last) continue;
    if (head.as_indices) {
      take_columns(all_indices_, columns, head.first, head.last, count, head.indices);
    } else {
      take_columns(all_values_, columns, head.first, head.last, count, head.values);
      units_[i].to_data(head.values);
    }
  }
}

void TrueLabels::set(int head, PredictedRows& rows) const {
  const OfHead& own = heads_[static_cast<std::size_t>(head)];
  rows.label_indices = own.indices;
  rows.label_values = own.values;
}

}  // namespace lockstep
