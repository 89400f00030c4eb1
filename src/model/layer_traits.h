// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a layer states about itself, as data: the graph, the memory plan and the executor read it when a model
// is built, never in a step.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/dtype.h"

namespace lockstep {

/// The type of a layer's activations. A model holds its activations as float32 or as one 16-bit type; that is
/// the model's type.
enum class TypeRule {
  float32,      ///< always float32
  model,        ///< the model's type
  first_input,  ///< the type in which the first input arrives
};

/// Whether a layer's only output is its input with another shape, so that it needs no memory and no call.
enum class View { never, in_inference, always };

/// An operation that the layer before it may compute in its own pass (Layer::fuse()).
enum class Fusible {
  none,
  relu,
  addition,  ///< of two inputs; the other one becomes the last input of the layer that computes it
};

/// A layer returns it from traits(). Every field has the default of a plain float32 layer, so a layer names
/// only `kind` and the fields in which it differs.
struct LayerTraits {
  const char* kind = "";  ///< the name of the layer's type, as in a configuration; lives as long as the layer

  /// Types of activations. Where an input arrives in another type, the graph inserts a cast. Variables,
  /// their gradients and statistics are always float32.
  TypeRule inputs = TypeRule::float32, outputs = TypeRule::float32;
  int float32_input = -1;  ///< an input that is float32 whatever `inputs` says (lengths); -1: none

  bool takes_inputs =
      true;  ///< false: a layer without inputs; true: without `inputs` it reads the layer before
  bool stops_gradient = false;  ///< no gradient passes to its inputs, and backward is never called
  View view = View::never;
  Fusible fusible = Fusible::none;  ///< what it is, for the layer before it

  // What backward reads and writes. This decides how long activations are kept.
  bool backward_reads_input = true;
  bool backward_reads_output = false;
  bool takes_two_gradients = false;  ///< backward adds Pass::dy2 to dy itself
  bool overwrites_dy = false;        ///< backward may overwrite Pass::dy

  std::optional<float> padding = {};  ///< of a layer that counts the ids of an input: what follows their end

  double flops_per_sample = 0;  ///< multiplications and additions of a forward pass; valid after infer()
  /// Valid after prepare(): why products of 16-bit numbers are computed in float32 on this device
  /// (LinearPrimitive::widened(), the first reason of its products); empty: they are not.
  std::string_view widened_products = {};

  DType input_type(std::size_t input, DType model, DType first_input) const {
    return static_cast<int>(input) == float32_input ? DType::f32 : resolve(inputs, model, first_input);
  }
  DType output_type(DType model, DType first_input) const { return resolve(outputs, model, first_input); }
  bool is_view(bool training) const {
    return view == View::always || (view == View::in_inference && !training);
  }

 private:
  static DType resolve(TypeRule rule, DType model, DType first_input) {
    return rule == TypeRule::float32 ? DType::f32 : rule == TypeRule::model ? model : first_input;
  }
};

}  // namespace lockstep
