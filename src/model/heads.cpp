// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/heads.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace lockstep {

namespace {

std::vector<Head> only(std::unique_ptr<Loss> loss) {
  std::vector<Head> heads;
  heads.push_back({.loss = std::move(loss)});
  return heads;
}

/// The value that replaces an ignored label.
template <typename T>
T ignored_label() {
  if constexpr (std::is_same_v<T, float>)
    return std::numeric_limits<float>::quiet_NaN();
  else
    return Loss::kIgnoredIndex;
}

/// Writes the n x columns labels of a head, or the rows of its table for them, as T.
template <typename T, typename From>
T* write(const Head& head, std::pair<std::int64_t, std::int64_t> columns, const From* labels,
         std::int64_t stride, std::int64_t n, T* out) {
  const std::optional<std::int32_t> ignored = head.loss->ignored();
  const std::size_t width = head.table.empty() ? 1 : head.table[0].size();
  for (std::int64_t i = 0; i < n; ++i, labels += stride)
    for (std::int64_t c = columns.first; c < columns.second; ++c) {
      const From label = labels[c];
      if (ignored && label == static_cast<From>(*ignored)) {
        out = std::fill_n(out, width, ignored_label<T>());
      } else if (head.table.empty()) {
        *out++ = static_cast<T>(label);
      } else {
        const std::vector<float>& row = head.table[static_cast<std::size_t>(label)];
        out = std::transform(row.begin(), row.end(), out, [](float value) { return static_cast<T>(value); });
      }
    }
  return out;
}

template <typename T>
T* write(const Head& head, std::pair<std::int64_t, std::int64_t> columns, const Labels& labels,
         std::int64_t n, void* out) {
  return labels.indices != nullptr
             ? write(head, columns, labels.indices, labels.columns, n, static_cast<T*>(out))
             : write(head, columns, labels.rows, labels.columns, n, static_cast<T*>(out));
}

}  // namespace

Heads::Heads(std::vector<Head> heads) : heads_(std::move(heads)) {
  LOCKSTEP_CHECK(!heads_.empty(), "a model without a loss");
}
Heads::Heads(std::unique_ptr<Loss> loss) : Heads(only(std::move(loss))) {}

bool Heads::takes_labels() const {
  return std::ranges::any_of(heads_, [](const Head& head) { return head.loss->takes_labels(); });
}
bool Heads::counts_labels() const {
  return std::ranges::any_of(heads_, [](const Head& head) { return head.loss->counts_labels(); });
}
const Head* Heads::only_classifier() const {
  const auto has_classes = [](const Head& head) { return head.loss->has_classes(); };
  return heads_.size() == 1 && has_classes(heads_[0]) ? heads_.data() : nullptr;
}

void Heads::add_outputs(Graph& graph) const {
  for (const Head& head : heads_)
    if (head.output.empty())
      graph.add_output(graph.nodes().empty() ? "features" : graph.nodes().back().layer->name(), head.where);
    else
      graph.add_output(head.output, head.where);
}

void Heads::prepare(const Graph& graph, Device& device) {
  label_words_ = 0;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    head.shape = graph.shape(graph.outputs()[i]);
    head.loss->prepare(device, head.shape);
    label_words_ += head.shape.num_elements();  // an upper bound until expect_columns()
  }
}

std::pair<std::int64_t, std::int64_t> Heads::columns_of(const Head& head, std::int64_t columns) const {
  if (!head.loss->takes_labels()) return {0, 0};
  const auto found = head.columns.value_or(std::pair<std::int64_t, std::int64_t>{0, columns});
  if (found.first < 0 || found.first >= found.second || found.second > columns)
    throw Error(ErrorKind::config,
                fmt::format("{}its labels are columns [{}, {}), but the data has {} label {}", head.prefix(),
                            found.first, found.second, columns, columns == 1 ? "column" : "columns"),
                head.where, "Give labels as [first, last): 0-based, the last one not included.");
  return found;
}

std::int64_t Heads::width(const Head& head, std::int64_t columns) const {
  const auto [first, last] = columns_of(head, columns);
  return (last - first) * (head.table.empty() ? 1 : static_cast<std::int64_t>(head.table[0].size()));
}

LabelForm Heads::form(const Head& head, std::int64_t columns) const {
  return head.loss->takes_labels() ? head.loss->form(head.shape, width(head, columns)) : LabelForm::none;
}

std::int64_t Heads::words(std::int64_t columns) const {
  std::int64_t sum = 0;
  for (const Head& head : heads_) sum += width(head, columns);
  return sum;
}

void Heads::expect_columns(std::int64_t columns) {
  for (const Head& head : heads_) {
    try {
      const LabelForm taken = form(head, columns);
      const LabelRule allowed = taken == LabelForm::none ? LabelRule{} : head.loss->rule(head.shape, taken);
      for (std::size_t row = 0; row < head.table.size(); ++row)
        for (const float value : head.table[row])
          if (!allowed.allows(static_cast<double>(value)))
            throw Error(ErrorKind::config, fmt::format("label_table has {} for class {}, which is not {}",
                                                       value, row, allowed.wanted));
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      throw Error(error.kind(), head.prefix() + error.what_happened(), head.where, error.advice());
    }
  }
  label_words_ = expected_ ? std::max(label_words_, words(columns)) : words(columns);
  expected_ = true;
}

LabelRule Heads::rule(const Head& head, std::int64_t columns) const {
  return head.table.empty()
             ? head.loss->rule(head.shape, form(head, columns))
             : LabelRule::classes(static_cast<std::int64_t>(head.table.size()), head.loss->ignored());
}

LabelBlock Heads::arrange(const Labels& labels, std::int64_t n, void* out) const {
  if (labels.indices == nullptr && labels.rows == nullptr) return {};
  LabelBlock block{out, labels.columns};
  if (const Head& head = heads_[0]; heads_.size() == 1 && head.table.empty() && !head.loss->ignored() &&
                                    width(head, labels.columns) == labels.columns) {
    const LabelForm taken = form(head, labels.columns);
    if (taken == LabelForm::indices && labels.indices != nullptr) block.data = labels.indices;
    if (taken == LabelForm::rows && labels.rows != nullptr) block.data = labels.rows;
    if (block.data != out) return block;
  }
  for (const Head& head : heads_) {
    const LabelForm taken = form(head, labels.columns);
    if (taken == LabelForm::none) continue;
    const auto columns = columns_of(head, labels.columns);
    if (taken == LabelForm::indices)
      out = write<std::int32_t>(head, columns, labels, n, out);
    else
      out = write<float>(head, columns, labels, n, out);
  }
  return block;
}

Labels Heads::labels_of(int number, const LabelBlock& block, std::int64_t n) const {
  if (block.data == nullptr) return {};
  const auto* words = static_cast<const char*>(block.data);
  for (int i = 0; i < number; ++i)
    words += static_cast<std::size_t>(n * width((*this)[i], block.columns)) * sizeof(float);
  const Head& head = (*this)[number];
  Labels labels{.columns = width(head, block.columns)};
  const LabelForm taken = form(head, block.columns);
  if (taken == LabelForm::indices) labels.indices = reinterpret_cast<const std::int32_t*>(words);
  if (taken == LabelForm::rows) labels.rows = reinterpret_cast<const float*>(words);
  return labels;
}

std::size_t Heads::bytes(const LabelBlock& block, std::int64_t n) const {
  return block.data == nullptr ? 0 : static_cast<std::size_t>(n * words(block.columns)) * sizeof(float);
}

void Heads::count(const LabelBlock& block, std::int64_t n, std::span<LossCounts> counts) const {
  for (int i = 0; i < size(); ++i) {
    const Head& head = (*this)[i];
    counts[static_cast<std::size_t>(i)] = head.loss->count(n, head.shape, labels_of(i, block, n));
  }
}

}  // namespace lockstep
