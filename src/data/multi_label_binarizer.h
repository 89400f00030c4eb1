// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets of label names into rows of 0 and 1, a column per class, for readers whose samples have any number of
// labels. The order of the classes is the list's, or that of the sorted names: never the order in which a
// file happens to have them, so a training set and its evaluation set agree. Immutable once made; any thread
// may use it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class MultiLabelBinarizer {
 public:
  /// Classes in this order. Throws Error(config) if there are none, or if one is empty or there twice.
  explicit MultiLabelBinarizer(std::vector<std::string> classes);
  /// Each name once, in the order of their bytes. `names` may have them any number of times. Throws
  /// Error(data) if there are none.
  static MultiLabelBinarizer from_names(std::span<const std::string> names, const std::string& source);

  std::int64_t num_classes() const { return static_cast<std::int64_t>(classes_.size()); }
  const std::vector<std::string>& classes() const { return classes_; }

  /// row[c] = 1 if class c is among `labels`, else 0: num_classes() numbers. A label may be there twice. One
  /// that is no class throws Error(data) that names `source`, `line` (counted from 1) and the label, and
  /// suggests the nearest class.
  void transform(std::span<const std::string_view> labels, const std::string& source, std::int64_t line,
                 float* row) const;

 private:
  std::vector<std::string> classes_;
  std::map<std::string, std::int64_t, std::less<>> columns_;
};

/// The names in "grain, wheat": separated, without blanks around them. An empty or blank text has none; an
/// empty name between two separators is left out.
std::vector<std::string_view> split_labels(std::string_view text, char separator);

}  // namespace lockstep
