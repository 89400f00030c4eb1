// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/text_classes.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/name_list.h"

namespace lockstep {

namespace {

/// More different texts are no classes, but names or sentences.
constexpr std::size_t kMostClasses = 10000;
constexpr std::size_t kShown = 60;  ///< characters of a text in messages

}  // namespace

std::optional<std::vector<std::string>> class_list(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return std::nullopt;
  const std::vector<std::string>& classes = params.strings(option.name);
  if (classes.empty())
    throw params.error(option.name, "is an empty list", "Name the classes, or write auto.");
  if (classes.size() == 1 && classes.front() == "auto") return std::nullopt;
  if (std::set<std::string>(classes.begin(), classes.end()).size() != classes.size())
    throw params.error(option.name, "names a class twice", "Name each once.");
  return classes;
}

void FoundClasses::add(std::string_view text) {
  if (found_.contains(text)) return;
  if (text.empty())
    throw Error(ErrorKind::data, "the label is an empty text", {}, "Every sample needs a class.");
  if (found_.size() == kMostClasses)
    throw Error(ErrorKind::data, fmt::format("its labels have more than {} different texts", kMostClasses),
                {},
                "Labels are names of classes. Name the classes in the option classes if they are so many.");
  found_.emplace(text);
}

TextClasses::TextClasses(std::vector<std::string> names) : names_(std::move(names)) {
  for (const std::string& name : names_) index_.emplace(name, static_cast<std::int32_t>(index_.size()));
}

std::int32_t TextClasses::index_of(std::string_view text) const {
  if (const auto found = index_.find(text); found != index_.end()) return found->second;
  throw Error(
      ErrorKind::data,
      fmt::format("the label '{}' is none of the {} classes ({})", text.substr(0, kShown), names_.size(),
                  name_list(names_)),
      {},
      "The classes are those of the training set, or those of the option classes: correct the record, "
      "or list all classes there.");
}

}  // namespace lockstep
