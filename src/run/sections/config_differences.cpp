// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What differs between the values of two configurations.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/name_list.h"
#include "core/shown_text.h"
#include "run/sections/config_values.h"

namespace lockstep {

namespace {

/// An option that differs in the same way for both data sets is shown once.
void merge_data_sets(std::vector<ConfigDifference>& differences) {
  constexpr std::string_view kTrain = ".train.";
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const std::string path = differences[i].path;
    const std::size_t at = path.find(kTrain);
    if (!path.starts_with("data.") || at == std::string::npos) continue;
    const std::string section = path.substr(0, at), key = path.substr(at + kTrain.size());
    const auto twin = std::ranges::find(differences, section + ".eval." + key, &ConfigDifference::path);
    if (twin == differences.end() || twin->before != differences[i].before || twin->now != differences[i].now)
      continue;
    differences[i].path = section + "." + key;
    differences.erase(twin);
  }
}

bool is_below(const std::string& path, const std::string& item) { return path.starts_with(item + "."); }

/// The items of a list on one line: "[a, {b: 1, c: 2}]"; none of another value.
std::vector<std::string> items_of(const std::optional<std::string>& value) {
  std::vector<std::string> items;
  if (!value || !value->starts_with('[') || !value->ends_with(']')) return items;
  int depth = 0;
  std::string item;
  for (const char c : std::string_view(*value).substr(1, value->size() - 2)) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ' ' && item.empty()) continue;
    if (c != ',' || depth > 0) {
      item += c;
      continue;
    }
    items.push_back(std::move(item));
    item.clear();
  }
  items.push_back(std::move(item));
  return items;
}

/// A list may name each of a million files: of long ones, some items from the first one that differs.
void shorten_lists(ConfigDifference& difference) {
  const std::vector<std::string> before = items_of(difference.before), now = items_of(difference.now);
  const auto alike = static_cast<std::size_t>(std::ranges::mismatch(before, now).in1 - before.begin());
  const auto shorten = [&](std::optional<std::string>& value, std::span<const std::string> items) {
    if (items.size() <= kMostNamed) return;
    const std::string rest = name_list(items.subspan(alike));
    value = alike == 0     ? fmt::format("[{}]", rest)
            : rest.empty() ? fmt::format("[{} alike]", alike)
                           : fmt::format("[{} alike, {}]", alike, rest);
  };
  shorten(difference.before, before);
  shorten(difference.now, now);
}

}  // namespace

std::vector<ConfigDifference> config_differences(std::span<const ConfigValue> before,
                                                 std::span<const ConfigValue> now) {
  std::vector<ConfigDifference> differences;
  std::vector<std::string> whole;  // items of lists that only one of the two has
  const auto find = [](std::span<const ConfigValue> values, const std::string& path) {
    const auto found = std::ranges::find(values, path, &ConfigValue::path);
    return found == values.end() ? nullptr : &*found;
  };
  const auto is_in_whole = [&](const std::string& path) {
    return std::ranges::any_of(whole, [&](const std::string& item) { return is_below(path, item); });
  };
  const auto shown = [](const ConfigValue& value) { return value.item.empty() ? value.value : value.item; };
  for (const ConfigValue& value : now) {
    const ConfigValue* old = find(before, value.path);
    if ((old != nullptr && old->value == value.value) || is_in_whole(value.path)) continue;
    const bool is_item = !value.item.empty() || (old != nullptr && !old->item.empty());
    if (is_item) whole.push_back(value.path);
    differences.push_back({value.path, old ? std::optional(shown(*old)) : std::nullopt, shown(value),
                           is_item && old && old->change == Change::result ? old->change : value.change});
  }
  for (const ConfigValue& old : before) {
    if (find(now, old.path) != nullptr || is_in_whole(old.path)) continue;
    if (!old.item.empty()) whole.push_back(old.path);
    differences.push_back({old.path, shown(old), std::nullopt, old.change});
  }
  // The order of a list is a difference of its own only where its items are the same.
  std::erase_if(differences, [&](const ConfigDifference& difference) {
    return std::ranges::any_of(whole,
                               [&](const std::string& item) { return is_below(item, difference.path); });
  });
  merge_data_sets(differences);
  std::ranges::for_each(differences, shorten_lists);
  return differences;
}

std::string diff_text(std::span<const ConfigDifference> differences) {
  std::string text;
  const auto add = [&](char sign, const std::string& path, const std::optional<std::string>& value) {
    if (!value) return;
    text += shown_format("\n  {} {}:", sign, path);
    if (value->find('\n') == std::string::npos) {
      text += " " + shown_text(*value);
      return;
    }
    std::istringstream lines(*value);
    for (std::string line; std::getline(lines, line);) text += shown_format("\n  {}   {}", sign, line);
  };
  for (const ConfigDifference& difference : differences) {
    add('-', difference.path, difference.before);
    add('+', difference.path, difference.now);
  }
  return text;
}

}  // namespace lockstep
