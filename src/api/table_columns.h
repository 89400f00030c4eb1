// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Columns of a table as features of a model: which ones there are, how the table is read, and what the model
// makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/input.h"
#include "api/model_builder.h"
#include "api/options.h"

namespace lockstep {

/// A column, by its name in the first line of the table.
struct TableColumn {
  enum class Kind { number, category, embedding };
  Kind kind = Kind::number;
  std::string name;
  std::vector<std::string> values = {};  ///< of texts; empty: those of the training set
  std::int64_t units = 0;                ///< of an embedding
};

/// Numbers: one feature.
TableColumn numeric_column(std::string name);
/// Texts: a feature of 0 or 1 for each value. Another value in the table is an error.
TableColumn category_column(std::string name, std::vector<std::string> values = {});
/// Texts: `units` numbers for each value, which are learnt.
TableColumn embedding_column(std::string name, std::int64_t units, std::vector<std::string> values = {});

/// The samples of a table. `table` has the path, the labels and whatever else the reader takes; its columns
/// and categories are those of `columns`. Throws Error(config) for columns that make no sense.
Input table_input(const std::vector<TableColumn>& columns, readers::Csv table);

/// What the features of table_input() are for the first layer of a model: a row of numbers. Without columns:
/// the features of samples with one input, flat.
LayerOutput table_features(const Features& features, const std::vector<TableColumn>& columns);

}  // namespace lockstep
