// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/sample_labels.h"

#include <fmt/format.h>

#include "data/table_info.h"

namespace lockstep {

namespace {

/// One of several labels; those of a table are named as its columns.
std::string label_text(const Dataset& data, bool named, std::size_t label) {
  if (named && data.class_names().empty() && data.table() != nullptr && label < data.table()->labels.size() &&
      !data.table()->labels[label].name.empty())
    return data.table()->labels[label].name;
  return class_text(data, named, static_cast<std::int64_t>(label));
}

}  // namespace

std::int64_t elements_of(const Head& head) { return head.shape.num_elements(); }

bool is_classifier(const Head& head) {
  return head.loss->predictions() == PredictionKind::classes && head.shape.last() == elements_of(head);
}

bool is_multi_label(const Head& head) {
  return head.loss->predictions() == PredictionKind::labels && head.shape.rank() == 1 &&
         elements_of(head) > 1;
}

bool has_few_values(const Head& head) { return elements_of(head) <= kMostShownValues; }

std::string class_text(const Dataset& data, bool named, std::int64_t index) {
  const std::vector<std::string>& names = data.class_names();
  return named && index >= 0 && index < static_cast<std::int64_t>(names.size())
             ? names[static_cast<std::size_t>(index)]
             : std::to_string(index);
}

std::string marked_text(const Dataset& data, bool named, std::span<const float> numbers, float limit) {
  std::string text;
  int marked = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!(numbers[i] > limit)) continue;
    if (++marked > kMostShownValues) return text + ", ...";
    text += (text.empty() ? "" : ", ") + label_text(data, named, i);
  }
  return text.empty() ? "none" : text;
}

}  // namespace lockstep
