// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "config/params.h"
#include "core/name_list.h"

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

/// The terms of a sample count as much as its weight. Positions count once, unless the weight is 0.
LossCounts weighted_count(const Loss& loss, std::int64_t n, const Shape& output, const Labels& labels) {
  LossCounts sum;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto weight = static_cast<double>(labels.weights[i]);
    if (weight == 0) continue;
    Labels own = labels;
    own.weights = nullptr;
    if (own.indices != nullptr) own.indices += i * labels.columns;
    if (own.rows != nullptr) own.rows += i * labels.columns;
    const LossCounts counts = loss.count(1, output, own);
    sum.divisor += weight * counts.divisor;
    sum.positions += counts.positions;
  }
  return sum;
}

/// A row of a label table, which stands for a class.
void check_row(const std::vector<float>& row, std::size_t number, const LabelRule& allowed) {
  double sum = 0;
  for (const float value : row) {
    sum += static_cast<double>(value);
    if (!allowed.allows(static_cast<double>(value)))
      throw Error(
          ErrorKind::config,
          fmt::format("label_table has {} for class {}, which is not {}", value, number, allowed.wanted), "",
          allowed.advice);
  }
  if (allowed.distribution == std::ssize(row) && std::abs(sum - 1) > LabelRule::kSumTolerance)
    throw Error(ErrorKind::config,
                fmt::format("the row of label_table for class {} sums to {:.4g}, not to 1", number, sum), "",
                allowed.advice);
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
  return std::ranges::any_of(
      heads_, [](const Head& head) { return head.loss->counts_labels() || head.weight_column >= 0; });
}
const Head* Heads::only_classifier() const {
  const auto has_classes = [](const Head& head) { return head.loss->has_classes(); };
  return heads_.size() == 1 && has_classes(heads_[0]) ? heads_.data() : nullptr;
}

void Heads::add_outputs(Graph& graph) const {
  for (const Head& head : heads_) {
    const std::string last = graph.nodes().empty() ? "features" : graph.nodes().back().layer->name();
    const bool weighted = head.weight_column >= 0 || !head.weight_name.empty();
    graph.add_output(head.output.empty() ? last : head.output, head.where,
                     head.loss->takes_16_bits() && !weighted);
  }
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
  const auto found = head.columns ? *head.columns : columns_without_weights(head, columns);
  if (found.first < 0 || found.first >= found.second || found.second > columns)
    throw Error(ErrorKind::config,
                fmt::format("{}its labels are columns [{}, {}), but the data has {} label {}", head.prefix(),
                            found.first, found.second, columns, columns == 1 ? "column" : "columns"),
                head.where, "Give labels as [first, last): 0-based, the last one not included.");
  return found;
}

/// All columns, but those that are weights of any head.
std::pair<std::int64_t, std::int64_t> Heads::columns_without_weights(const Head& head,
                                                                     std::int64_t columns) const {
  const auto is_weight = [&](std::int64_t column) {
    return std::ranges::find(heads_, column, &Head::weight_column) != heads_.end();
  };
  std::int64_t first = 0, last = columns;
  while (first < last && is_weight(first)) ++first;
  while (last > first && is_weight(last - 1)) --last;
  for (std::int64_t column = first; column < last; ++column)
    if (is_weight(column))
      throw Error(ErrorKind::config,
                  fmt::format("{}label column {} has the weights, among columns that are labels",
                              head.prefix(), column),
                  head.where, "Say which columns are labels: model.heads with labels.");
  return {first, last};
}

void Heads::name_labels(std::span<const NamedShape> targets) {
  const auto find = [&](const Head& head, const std::string& name) {
    std::pair<std::int64_t, std::int64_t> columns{0, 0};
    std::vector<std::string_view> known;
    for (const NamedShape& target : targets) {
      columns = {columns.second, columns.second + target.shape.num_elements()};
      if (target.name == name) return columns;
      known.push_back(target.name);
    }
    const std::string suggestion = nearest(name, known);
    throw Error(ErrorKind::config,
                known.empty()
                    ? fmt::format("{}the data's labels have no names, so none is '{}'", head.prefix(), name)
                    : fmt::format("{}there is no target '{}'", head.prefix(), name),
                head.where,
                known.empty()        ? "data.targets names labels; columns have numbers: labels: [0, 1]."
                : suggestion.empty() ? fmt::format("The targets of the data are {}.", name_list(known))
                                     : fmt::format("Did you mean '{}'?", suggestion));
  };
  for (Head& head : heads_) {
    if (!head.label_name.empty()) head.columns = find(head, head.label_name);
    if (head.weight_name.empty()) continue;
    const auto [first, last] = find(head, head.weight_name);
    if (last - first != 1)
      throw Error(ErrorKind::config,
                  fmt::format("{}sample_weights: target {} has {} values per sample", head.prefix(),
                              head.weight_name, last - first),
                  head.where, "A sample has one weight.");
    head.weight_column = first;
  }
}

std::int64_t Heads::width(const Head& head, std::int64_t columns) const {
  const auto [first, last] = columns_of(head, columns);
  return (last - first) * (head.table.empty() ? 1 : static_cast<std::int64_t>(head.table[0].size()));
}

LabelForm Heads::form(const Head& head, std::int64_t columns) const {
  return head.loss->takes_labels() ? head.loss->form(head.shape, width(head, columns)) : LabelForm::none;
}

/// Values per sample of a head's part of a block.
std::int64_t Heads::words(const Head& head, std::int64_t columns) const {
  return width(head, columns) + (head.weight_column >= 0 ? 1 : 0);
}

std::int64_t Heads::words(std::int64_t columns) const {
  std::int64_t sum = 0;
  for (const Head& head : heads_) sum += words(head, columns);
  return sum;
}

void Heads::expect_columns(std::int64_t columns) {
  for (const Head& head : heads_) {
    if (head.weight_column >= columns)
      throw Error(ErrorKind::config,
                  fmt::format("{}sample_weights: the data has {} label {}", head.prefix(), columns,
                              columns == 1 ? "column" : "columns"),
                  head.where, "Columns are counted from 0.");
    try {
      const LabelForm taken = form(head, columns);
      const LabelRule allowed = taken == LabelForm::none ? LabelRule{} : head.loss->rule(head.shape, taken);
      for (std::size_t row = 0; row < head.table.size(); ++row) check_row(head.table[row], row, allowed);
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
                                    head.weight_column < 0 && width(head, labels.columns) == labels.columns) {
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
    if (head.weight_column < 0) continue;
    float* const weights = static_cast<float*>(out);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = i * labels.columns + head.weight_column;
      weights[i] = labels.indices != nullptr ? static_cast<float>(labels.indices[at]) : labels.rows[at];
    }
    out = weights + n;
  }
  return block;
}

Labels Heads::labels_of(int number, const LabelBlock& block, std::int64_t n) const {
  if (block.data == nullptr) return {};
  const auto* words = static_cast<const char*>(block.data);
  for (int i = 0; i < number; ++i)
    words += static_cast<std::size_t>(n * this->words((*this)[i], block.columns)) * sizeof(float);
  const Head& head = (*this)[number];
  Labels labels{.columns = width(head, block.columns)};
  const LabelForm taken = form(head, block.columns);
  if (taken == LabelForm::indices) labels.indices = reinterpret_cast<const std::int32_t*>(words);
  if (taken == LabelForm::rows) labels.rows = reinterpret_cast<const float*>(words);
  if (head.weight_column >= 0) labels.weights = reinterpret_cast<const float*>(words) + n * labels.columns;
  return labels;
}

std::size_t Heads::bytes(const LabelBlock& block, std::int64_t n) const {
  return block.data == nullptr ? 0 : static_cast<std::size_t>(n * words(block.columns)) * sizeof(float);
}

void Heads::count(const LabelBlock& block, std::int64_t n, std::span<LossCounts> counts) const {
  for (int i = 0; i < size(); ++i) {
    const Head& head = (*this)[i];
    const Labels labels = labels_of(i, block, n);
    counts[static_cast<std::size_t>(i)] = labels.weights == nullptr
                                              ? head.loss->count(n, head.shape, labels)
                                              : weighted_count(*head.loss, n, head.shape, labels);
  }
}

}  // namespace lockstep
