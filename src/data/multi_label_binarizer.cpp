// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/multi_label_binarizer.h"

#include <algorithm>

#include "config/params.h"
#include "core/error.h"

namespace lockstep {

MultiLabelBinarizer::MultiLabelBinarizer(std::vector<std::string> classes) : classes_(std::move(classes)) {
  LOCKSTEP_REQUIRE(!classes_.empty(), ErrorKind::config, "the list of classes is empty");
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    LOCKSTEP_REQUIRE(!classes_[c].empty(), ErrorKind::config, "class {} of the list has no name", c);
    const bool is_new = columns_.emplace(classes_[c], static_cast<std::int64_t>(c)).second;
    LOCKSTEP_REQUIRE(is_new, ErrorKind::config, "class '{}' occurs twice in the list of classes",
                     classes_[c]);
  }
}

void MultiLabelBinarizer::transform(std::span<const std::string_view> labels, const std::string& source,
                                    std::int64_t line, float* row) const {
  std::fill_n(row, classes_.size(), 0.0F);
  for (const std::string_view label : labels) {
    const auto found = columns_.find(label);
    if (found == columns_.end()) {
      const std::vector<std::string_view> known(classes_.begin(), classes_.end());
      const std::string near = nearest(label, known);
      throw Error(
          ErrorKind::data, fmt::format("label '{}' is not one of the {} classes", label, num_classes()),
          fmt::format("{}, line {}", source, line),
          near.empty() ? "Add it to the list of classes, or correct the line."
                       : fmt::format("Did you mean '{}'? Otherwise add it to the list of classes.", near));
    }
    row[found->second] = 1.0F;
  }
}

std::vector<std::string_view> split_labels(std::string_view text, char separator) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  std::vector<std::string_view> labels;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view label = text.substr(begin, end - begin);
    while (!label.empty() && is_blank(label.front())) label.remove_prefix(1);
    while (!label.empty() && is_blank(label.back())) label.remove_suffix(1);
    if (!label.empty()) labels.push_back(label);
    begin = end + 1;
  }
  return labels;
}

}  // namespace lockstep
