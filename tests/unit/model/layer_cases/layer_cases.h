// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layer in the forms that it takes, each with what it should compute: plain loops in double.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/layer_runner.h"
#include "unit/model/model_testing.h"

namespace lockstep {

using Inputs = std::vector<Values>;
/// By the part of the name behind the '/'.
using Variables = std::map<std::string, Values>;

struct LayerCase {
  std::string name;
  std::string yaml;  ///< one layer
  std::vector<Shape> inputs;
  /// The whole batch's outputs, one behind the other, from its inputs and its trainable variables.
  std::function<Values(const Inputs& inputs, const Variables& variables)> reference;
  bool relu = false, residual = false;  ///< fused
  bool two_gradients = false;
  double low = -1, high = 1;                       ///< of the inputs
  std::vector<std::int64_t> microshards = {2, 1};  ///< samples of each
  /// Inputs by number that nobody differentiates (indices, lengths): their values for the whole batch.
  std::map<int, std::vector<float>> fixed_inputs = {};
  bool same_in_inference = true;  ///< false: inference is another function, tested by itself
  double tolerance = 2e-5;        ///< of gradients, relative
};

/// At least one for every entry of layer_table().
std::vector<LayerCase> layer_cases();

// One file per family, <family>_cases.cpp.
void add_linear_cases(std::vector<LayerCase>& cases);
void add_pool_cases(std::vector<LayerCase>& cases);
void add_simple_cases(std::vector<LayerCase>& cases);
void add_activation_cases(std::vector<LayerCase>& cases);
void add_batch_norm_cases(std::vector<LayerCase>& cases);
void add_recurrent_cases(std::vector<LayerCase>& cases);
void add_embedding_cases(std::vector<LayerCase>& cases);

/// The inputs of a case in a runner: random ones, and the fixed ones.
void fill_inputs(const LayerCase& test, LayerRunner& run);
/// The runner's options that a case asks for.
LayerRunnerOptions runner_options(const LayerCase& test);
/// All outputs, one behind the other.
std::vector<float> outputs_of(const LayerRunner& run);

/// The values of a variable, or none.
Values variable(const Variables& variables, const std::string& name);
/// max(x, 0).
Values rectified(Values values);

}  // namespace lockstep
