// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: which of some named arrays are features and which are labels. HDF5 and netCDF files,
// NumPy's and TensorFlow's are alike in this: names decide first, then types and shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/new/data_guess.h"

namespace lockstep {

struct NamedArray {
  enum class Kind { whole, real, boolean, text, image, table, other };
  std::string name;                   ///< "train/image"
  std::vector<std::int64_t> extents;  ///< the first one counts samples
  Kind kind = Kind::other;
  /// Nobody's samples or labels, and why: the values of an axis, the layout of pandas.
  std::string excluded = {};
  /// Each number is that of the row before plus 1; null: nobody knows.
  std::function<bool()> counts_rows = {};
  /// Texts that are hardly ever the same are no classes; null: nobody knows.
  std::function<bool()> repeats = {};
};

struct ChosenArrays {
  std::string features, labels;            ///< of the training set, or of all
  std::string eval_features, eval_labels;  ///< empty: there is no evaluation set
  std::vector<std::string> notes, assumed;
};

/// `word`: what messages call an array ("dataset"). Throws Error(data) at question.place if no array has
/// labels, and names those that there are.
ChosenArrays choose_arrays(const std::vector<NamedArray>& arrays, const DataQuestion& question,
                           const std::string& word);

/// "train/" of "train/image"; empty without a group.
std::string group_of(const std::string& name);
/// "none", or names with shapes.
std::string list_of(const std::vector<NamedArray>& arrays);

}  // namespace lockstep
