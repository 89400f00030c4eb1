// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All tables of options with their places in a configuration, and what options of type "map or value" take.
// `lockstep explain`, the JSON schema and the completion of keys are made from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"

namespace lockstep {

/// One table of options.
struct CatalogueEntry {
  std::string title;  ///< its heading in docs/config.md: "Layer conv2d"
  /// "layer", "reader", "section", ... Tables that all layers have: "every layer"; that all data sets have:
  /// "data".
  std::string kind;
  std::string name;  ///< "conv2d"; empty if the kind has one table only
  std::string help;
  std::span<const ParamSpec> table;
};
/// The options in the order of docs/config.md.
std::vector<CatalogueEntry> option_catalogue();

/// What an option of type "map or value" takes.
struct NodeForm {
  std::string_view title;   ///< of the table; empty: of any
  std::string_view option;  ///< "*_initializer": each that ends so
  std::string_view schema;  ///< JSON schema; its definitions are those of schema.cpp
  std::string_view example;
};
/// The form of an option; a null pointer for options of other types and for numbers that may follow a
/// schedule.
const NodeForm* node_form(std::string_view title, const ParamSpec& option);

/// A value that the option takes, as YAML in flow style.
std::string example_value(std::string_view title, const ParamSpec& option);
/// Lines of YAML with one option of an entry in its place, and those that the entry requires; without
/// `option` those alone.
std::string example_lines(const CatalogueEntry& entry, const ParamSpec* option = nullptr);
/// Where the options of an entry are written, in words: "an item of model.layers".
std::string place_in_words(const CatalogueEntry& entry);

}  // namespace lockstep
