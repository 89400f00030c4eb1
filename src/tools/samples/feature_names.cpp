// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/samples/feature_names.h"

#include <fmt/format.h>

#include "data/table_info.h"

namespace lockstep {

std::vector<std::string> feature_names(const Dataset& data) {
  std::vector<std::string> names;
  if (data.table() == nullptr || data.feature_shape().rank() != 1) return names;
  for (const TableInfo::Column& column : data.table()->features) {
    if (column.name.empty()) return {};
    if (column.values.empty()) names.push_back(column.name);
    for (const std::string& value : column.values)
      names.push_back(fmt::format("{} = {}", column.name, value));
  }
  if (static_cast<std::int64_t>(names.size()) != data.feature_shape()[0]) return {};
  return names;
}

std::string channel_name(const std::vector<std::string>& names, std::size_t channel) {
  return channel < names.size() ? "column " + names[channel] : fmt::format("channel {}", channel);
}

}  // namespace lockstep
