// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers: labels that are texts, the names of classes: those of an option, or those that the
// training set has, sorted by their bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"

namespace lockstep {

/// The option classes, for option_as(); nothing: null or auto, the classes are those of the training set.
/// Throws Error(config) if it is an empty list, or names a class twice.
std::optional<std::vector<std::string>> class_list(const Params& params, const ParamSpec& option);

/// The texts that labels have.
class FoundClasses {
 public:
  /// Throws Error(data) without a place for an empty text, and for more different ones than classes can be.
  void add(std::string_view text);
  /// Sorted by their bytes.
  std::vector<std::string> names() const { return {found_.begin(), found_.end()}; }

 private:
  std::set<std::string, std::less<>> found_;
};

/// The index of each class.
class TextClasses {
 public:
  TextClasses() = default;
  explicit TextClasses(std::vector<std::string> names);
  const std::vector<std::string>& names() const { return names_; }
  /// Throws Error(data) without a place for a text that is no class.
  std::int32_t index_of(std::string_view text) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> index_;
};

}  // namespace lockstep
