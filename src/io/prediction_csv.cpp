// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Predictions as CSV. The column sample, if samples have other numbers than their lines; the column `id`, if
// the data have names for their samples; the column sample_name, if names are written; then the columns of a
// head, in order:
//
//   class, class_name                 exclusive classes: index and name of the most probable one
//   probability_C, logit_C, value_C   each number; C is the name of the class, or the index
//   NAME                              instead of value_C: the number's own name, if it has one
//   spread_C or spread_NAME           the standard deviation over the members of an ensemble
//   label, label_name                 the true label, of exclusive classes
//   true_C or true_NAME               the other true labels
//
// Outputs with several positions (pixels, tokens) have class_P and probability_P_C, where P is the position.
// Several heads: HEAD/ before each name.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/plain_nan.h"
#include "io/prediction_file.h"

namespace lockstep {

namespace {

/// In quotes if CSV needs them.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

class PredictionCsv final : public PredictionWriter {
 public:
  PredictionCsv(OutputFile& output, PredictionInfo info)
      : output_(output),
        heads_(std::move(info.heads)),
        sample_name_(std::move(info.sample_name)),
        id_(std::move(info.id)),
        number_(std::move(info.number)) {
    if (number_) text_ += "sample,";
    if (id_) text_ += field(info.id_name) + ",";
    if (sample_name_) text_ += "sample_name,";
    for (const PredictedHead& head : heads_) append_names(head);
    end_line();
  }

  void add(std::int64_t n, std::span<const PredictedRows> heads) override {
    for (std::int64_t i = 0; i < n; ++i, ++done_) {
      if (number_) fmt::format_to(std::back_inserter(text_), "{},", number_(done_));
      if (id_) text_ += field(id_(done_)) + ",";
      if (sample_name_) text_ += field(sample_name_(done_)) + ",";
      for (std::size_t h = 0; h < heads_.size(); ++h) {
        const auto values = static_cast<std::size_t>(heads_[h].values());
        append_row(heads_[h], heads[h].outputs.subspan(static_cast<std::size_t>(i) * values, values));
        if (heads_[h].has_spread)
          append_numbers(heads[h].spread.subspan(static_cast<std::size_t>(i) * values, values));
        append_labels(heads_[h], heads[h], i);
      }
      end_line();
    }
    output_.append(text_);
    text_.clear();
  }
  void finish() override {  // without samples the names are still there
    output_.append(text_);
    text_.clear();
  }

 private:
  void append_names(const PredictedHead& head) {
    const auto add = [&](const std::string& name) {
      text_ += field(head.name.empty() ? name : fmt::format("{}/{}", head.name, name)) + ",";
    };
    const std::int64_t positions = head.positions(), classes = head.classes();
    const bool named = !head.class_names.empty();
    for (std::int64_t p = 0; head.has_classes && p < positions; ++p) {
      const std::string suffix = positions == 1 ? "" : fmt::format("_{}", p);
      add("class" + suffix);
      if (named) add("class_name" + suffix);
    }
    const auto add_values = [&](std::string_view quantity, bool is_own_name) {
      for (std::int64_t p = 0; p < positions; ++p)
        for (std::int64_t c = 0; c < classes; ++c) {
          const auto number = static_cast<std::size_t>(p * classes + c);
          std::string name(quantity);
          if (!head.value_names.empty()) {
            add(is_own_name ? head.value_names[number] : name + "_" + head.value_names[number]);
            continue;
          }
          if (positions > 1) name += fmt::format("_{}", p);
          if (classes > 1 || positions == 1)
            name += "_" + (named ? head.class_names[static_cast<std::size_t>(c)] : std::to_string(c));
          add(name);
        }
    };
    add_values(head.quantity, true);
    if (head.has_spread) add_values("spread", false);
    if (head.labels == 0) return;
    if (!head.labels_are_indices && head.labels == head.values()) return add_values("true", false);
    for (std::int64_t i = 0; i < head.labels; ++i) {
      const std::string suffix = head.labels == 1 ? "" : fmt::format("_{}", i);
      add((head.labels_are_indices ? "label" : "true") + suffix);
      if (head.labels_are_indices && named) add("label_name" + suffix);
    }
  }

  void append_labels(const PredictedHead& head, const PredictedRows& rows, std::int64_t i) {
    const auto first = static_cast<std::size_t>(i * head.labels),
               count = static_cast<std::size_t>(head.labels);
    if (count == 0) return;
    if (!head.labels_are_indices) return append_numbers(rows.label_values.subspan(first, count));
    for (const std::int32_t label : rows.label_indices.subspan(first, count)) {
      fmt::format_to(std::back_inserter(text_), "{},", label);
      if (!head.class_names.empty()) text_ += field(name_of_class(head, label)) + ",";
    }
  }

  void append_numbers(std::span<const float> values) {
    for (const float value : values) fmt::format_to(std::back_inserter(text_), "{},", plain_nan(value));
  }

  /// Empty: there is no such class.
  static std::string name_of_class(const PredictedHead& head, std::int64_t index) {
    return index >= 0 && index < std::ssize(head.class_names)
               ? head.class_names[static_cast<std::size_t>(index)]
               : std::string();
  }

  void append_row(const PredictedHead& head, std::span<const float> row) {
    const auto classes = static_cast<std::size_t>(head.classes());
    for (std::size_t at = 0; head.has_classes && at < row.size(); at += classes) {
      const std::int64_t best = largest_class(row.subspan(at, classes));
      fmt::format_to(std::back_inserter(text_), "{},", best);
      if (!head.class_names.empty()) text_ += field(name_of_class(head, best)) + ",";
    }
    append_numbers(row);
  }

  void end_line() { text_.back() = '\n'; }  // in place of the last comma

  OutputFile& output_;
  std::vector<PredictedHead> heads_;
  std::function<std::string(std::int64_t)> sample_name_, id_;
  std::function<std::int64_t(std::int64_t)> number_;
  std::int64_t done_ = 0;  ///< samples
  std::string text_;
};

}  // namespace

std::int64_t largest_class(std::span<const float> position) {
  if (std::ranges::any_of(position, [](float value) { return std::isnan(value); })) return -1;
  return std::max_element(position.begin(), position.end()) - position.begin();
}

std::unique_ptr<PredictionWriter> make_prediction_csv(OutputFile& output, PredictionInfo info) {
  return std::make_unique<PredictionCsv>(output, std::move(info));
}

}  // namespace lockstep
