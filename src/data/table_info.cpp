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

std::string name_of(const TableInfo::Column& column) {
  return column.name.empty() ? fmt::format("column {}", column.index + 1)
                             : fmt::format("column {} ({})", column.index + 1, column.name);
}

}  // namespace lockstep
