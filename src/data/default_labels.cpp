// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/default_labels.h"

#include "config/param_reader.h"
#include "data/reader_table.h"

namespace lockstep {

Node without_default_labels(Node options, const std::string& format) {
  const std::span<const ParamSpec> table = find_reader(format).table;
  const auto is_written = [&](std::string_view key) { return options.find(key) != nullptr; };
  if (is_written("label_column") || is_written("labels")) return options;
  for (const ParamSpec& spec : table) {
    if ((spec.name != "label_column" && spec.name != "labels") || spec.fallback == "null") continue;
    options.entries.emplace_back(std::string(spec.name),
                                 Node::scalar(may_be_null(spec) ? "null" : "none", options.where));
    options.entry_where.push_back(options.where);
  }
  return options;
}

}  // namespace lockstep
