// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep explain` prints about one option, or about one table of them.
#pragma once

#include <string>
#include <vector>

#include "reference/option_catalogue.h"

namespace lockstep {

/// A table, or one option of it.
struct ExplainedOption {
  const CatalogueEntry* entry;
  const ParamSpec* option;  ///< null: the table
};

/// What stands before an option: "conv2d"; "layer" for those of every layer.
std::string owner_of(const CatalogueEntry& entry);
/// As it is typed after `explain`: "conv2d.filters", "train.batch_size".
std::string address(const ExplainedOption& match);
/// All about one option, with an example that works.
std::string option_text(const ExplainedOption& match);
/// A table: where it stands, an example, and a line for each of its options.
std::string table_text(const CatalogueEntry& entry, const std::vector<CatalogueEntry>& catalogue);

}  // namespace lockstep
