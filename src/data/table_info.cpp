// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/table_info.h"

#include <fmt/format.h>

namespace lockstep {

namespace {

/// In one line without tabs.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string TableInfo::categories_text() const {
  std::string text;
  for (const Column& column : features)
    for (const std::string& value : column.values)
      text += (column.name.empty() ? std::to_string(column.index) : escaped(column.name)) + "\t" +
              escaped(value) + "\n";
  return text;
}

std::string column_text(std::int64_t index, const std::string& name) {
  constexpr std::size_t kLongest = 60;
  return name.empty() ? fmt::format("column {} (from 0)", index)
                      : fmt::format("column {}", name.substr(0, kLongest));
}

std::string name_of(const TableInfo::Column& column) { return column_text(column.index, column.name); }

}  // namespace lockstep
