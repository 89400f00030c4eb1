// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tensor of a file becomes which variable of a model. Names and shapes only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "exchange/foreign_tensor.h"

namespace lockstep {

/// A variable of the model that the tensors are compared with.
struct WantedVariable {
  std::string name;
  std::vector<std::int64_t> extents;
};

struct ImportPlan {
  struct Line {
    std::size_t tensor;
    std::string variable;  ///< empty: none
    bool fits = false;     ///< a wanted variable of this name has this shape
    bool guessed = false;  ///< its name is another; the shape and the place among its like fit
  };
  std::vector<Line> lines;           ///< by tensor
  std::vector<std::string> missing;  ///< wanted variables that no line takes
};

/// Tensors go to the variable of their own name; those left over, to the variables left over whose name ends
/// alike and whose shape is the same, in the order of both lists, if there are equally many of them.
ImportPlan propose_import(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted);

}  // namespace lockstep
