// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts sets of label names to rows of 0 and 1 with one column per class, for readers whose samples have
// any number of labels. The order of the classes is that of the given list or of the sorted names, never that
// of the file, so a training set and its evaluation set agree. Immutable; any thread may use it.
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
  /// Uses the classes in this order. Throws Error(config) if there are none, or if one is empty or repeated.
  explicit MultiLabelBinarizer(std::vector<std::string> classes);
  /// Uses each name once, in byte order. `names` may contain duplicates. Throws Error(data) if there are
  /// none.
  static MultiLabelBinarizer from_names(std::span<const std::string> names, const std::string& source);

  std::int64_t num_classes() const { return static_cast<std::int64_t>(classes_.size()); }
  const std::vector<std::string>& classes() const { return classes_; }

  /// Sets row[c] = 1 if class c is among `labels`, else 0, for num_classes() values. `labels` may contain
  /// duplicates. An unknown label throws Error(data) that names `source`, `line` (from 1) and the label, and
  /// suggests the nearest class.
  void transform(std::span<const std::string_view> labels, const std::string& source, std::int64_t line,
                 float* row) const;

 private:
  std::vector<std::string> classes_;
  std::map<std::string, std::int64_t, std::less<>> columns_;
};

/// Splits "grain, wheat" into names without surrounding blanks. A blank text has none; empty names between
/// separators are skipped.
std::vector<std::string_view> split_labels(std::string_view text, char separator);

}  // namespace lockstep
