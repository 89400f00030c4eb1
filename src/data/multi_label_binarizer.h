// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts sets of label names to rows of 0 and 1 with one column per class, for readers whose samples have
// any number of labels. The classes are given, so a training set and its evaluation set agree. Immutable; any
// thread may use it.
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
  std::int64_t num_classes() const { return static_cast<std::int64_t>(classes_.size()); }

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
