// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which columns of a table became the features and labels of a data set: so that another file of the same
// form is read the same way, whatever else it holds.
//
// Lists of a table's values (`auto`) come from the training set: training, evaluation and prediction need one
// list, but open different files. So a reader may have `make_evaluation`, which gets the options of the
// training set, too. csv reads the training files once more with them, only the columns whose lists are
// `auto`. Commands that use a finished run take the lists of its checkpoint instead (sample_description.h).
// classes.txt and categories.txt of the run are a guard: what is read from the data must equal them.
// There is no value for texts that the training set lacks: a model would have no trained input for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct TableInfo {
  struct Column {
    std::int64_t index = 0;           ///< in the file, from 0
    std::string name;                 ///< empty: the file names no columns
    std::vector<std::string> values;  ///< of a category; empty: the column holds numbers
    bool operator==(const Column&) const = default;
  };
  std::int64_t num_columns = 0;  ///< of the file
  std::vector<Column> features;  ///< in the order of their values
  std::vector<Column> labels;
  /// The hash of each sample's text in the column key_column (split_keys.h); empty without one.
  std::vector<std::uint64_t> keys;

  /// A line "column <tab> value" per value of a category, in their order; empty if there are none.
  std::string categories_text() const;
};

/// "column age"; "column 3 (from 0)" where the file names no columns, as the options count them.
std::string column_text(std::int64_t index, const std::string& name);
std::string name_of(const TableInfo::Column& column);

}  // namespace lockstep
