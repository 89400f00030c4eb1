// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of every layer, each with a reference computation: plain loops in double.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/layer_runner.h"
#include "unit/model/model_testing.h"

namespace lockstep {

using Inputs = std::vector<Values>;
/// By the part of the name after the '/'.
using Variables = std::map<std::string, Values>;

struct LayerCase {
  std::string name;
  std::string yaml;  ///< one layer
  std::vector<Shape> inputs;
  /// Computes the outputs of the whole batch, one after the other, from its inputs and trainable variables.
  std::function<Values(const Inputs& inputs, const Variables& variables)> reference;
  bool relu = false, residual = false;  ///< fused
  bool two_gradients = false;
  double low = -1, high = 1;                       ///< of the inputs
  std::vector<std::int64_t> microshards = {2, 1};  ///< samples of each
  /// Inputs without a gradient (indices, lengths), by number: their values for the whole batch.
  std::map<int, std::vector<float>> fixed_inputs = {};
  bool same_in_inference = true;  ///< false: inference is another function, with tests of its own
  double tolerance = 2e-5;        ///< of gradients, relative
  std::string frozen = {};        ///< variables whose names contain it are frozen
};

/// At least one for every entry of layer_table().
std::vector<LayerCase> layer_cases();

// One file per family, <family>_cases.cpp.
void add_linear_cases(std::vector<LayerCase>& cases);
void add_convolution_cases(std::vector<LayerCase>& cases);
void add_pool_cases(std::vector<LayerCase>& cases);
void add_resize_cases(std::vector<LayerCase>& cases);
void add_simple_cases(std::vector<LayerCase>& cases);
void add_activation_cases(std::vector<LayerCase>& cases);
void add_batch_norm_cases(std::vector<LayerCase>& cases);
void add_recurrent_cases(std::vector<LayerCase>& cases);
void add_group_norm_cases(std::vector<LayerCase>& cases);
void add_structure_cases(std::vector<LayerCase>& cases);
void add_embedding_cases(std::vector<LayerCase>& cases);
void add_attention_cases(std::vector<LayerCase>& cases);
void add_sampling_cases(std::vector<LayerCase>& cases);

/// Fills the inputs of a case in a runner: random numbers, and the fixed inputs.
void fill_inputs(const LayerCase& test, LayerRunner& run);
/// The runner's options for a case.
LayerRunnerOptions runner_options(const LayerCase& test);
/// All outputs, one after the other.
std::vector<float> outputs_of(const LayerRunner& run);

/// The values of a variable, or none.
Values variable(const Variables& variables, const std::string& name);
/// max(x, 0).
Values rectified(Values values);

}  // namespace lockstep
