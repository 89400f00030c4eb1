// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layer in the forms that it takes, each with what it should compute: plain loops in double.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model_testing.h"

namespace lockstep {

struct LayerCase {
  std::string name;
  std::string yaml;  ///< one layer
  std::vector<Shape> inputs;
  /// The whole batch's output, from its inputs and its trainable variables (by the part of the name behind
  /// the '/').
  std::function<Values(const std::vector<Values>& inputs, const std::map<std::string, Values>& variables)>
      reference;
  bool relu = false, residual = false;  ///< fused
  bool two_gradients = false;
  double low = -1, high = 1;                       ///< of the inputs
  std::vector<std::int64_t> microshards = {2, 1};  ///< samples of each
};

/// At least one for every entry of layer_table().
std::vector<LayerCase> layer_cases();

}  // namespace lockstep
