// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Are these gradients right? Analytic ones are compared with central differences
//   n = (f(x + h e_i) - f(x - h e_i)) / 2h,
// whose truncation error is h^2 f''' / 6 and whose noise is the rounding of f over h; h is the cube root of
// f's precision, scaled to |x_i|, where both are of one size. An element is right if |a - n| <= tolerance *
// max(|a|, |n|) + noise, with a noise that is computed, never guessed. NaN is never right.
//
// Kinks (relu at 0, max_pool at a tie): where a kink lies between x - h and x + h, the quotient with h and
// with h / 2 differ by more than a smooth function's would. Such elements are left out and counted. A point
// that lies exactly on a kink cannot be told: choose points with Philox numbers, where that does not happen.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "model/layer.h"

namespace lockstep {

struct GradientCheckOptions {
  double tolerance = 1e-4;  ///< relative; the gradient is float32, sums of k terms need about sqrt(k) * 6e-8
  /// Step per unit of max(|x_i|, 1); 0: the cube root of f's precision (6e-6 in double, 5e-3 in float32).
  double step = 0;
  std::int64_t max_elements = 0;  ///< at most so many, chosen by Philox with `seed`; 0: all
  std::uint64_t seed = 0;
  /// Rounding of the analytic gradient, absolute, as a share of the largest |n| that was looked at.
  double gradient_noise = 1e-6;
};

/// What a check found: the worst element. `error` is max(0, |a - n| - noise) / max(|a|, |n|), infinite for
/// NaN.
struct GradientCheck {
  std::string name;  ///< of what was differentiated: "input 0", "dense1/kernel"
  double error = 0, tolerance = 0;
  std::int64_t index = -1;  ///< of the worst element; -1: no element was looked at
  double analytic = 0, numeric = 0, noise = 0;
  std::int64_t checked = 0, kinks = 0;  ///< elements compared, elements left out

  /// Right everywhere, with at least three of four chosen elements compared.
  bool passed() const { return checked > 0 && error <= tolerance && kinks * 3 <= checked; }
  /// "dense1/kernel: element 7 is 0.25, central differences give 0.5 (relative error ...)".
  std::string to_string() const;
};

/// `function` is a scalar function in double precision of a vector like `point`, `gradient` its gradient
/// there.
GradientCheck check_gradient(FunctionRef<double(std::span<const double>)> function,
                             std::span<const double> point, std::span<const float> gradient,
                             const GradientCheckOptions& options = {});

struct LayerCheckOptions {
  GradientCheckOptions check = {.tolerance = 1e-2};
  std::vector<std::int64_t> microshards = {2, 1};  ///< samples of each
  int fused_inputs = 0;                            ///< as in LayerRunnerOptions
  bool two_gradients = false;
  std::uint64_t seed = 1;     ///< of inputs, output weights and initial values
  double low = -1, high = 1;  ///< inputs are uniform between these
  /// Inputs by number that nobody differentiates (indices, lengths): their values for the whole batch.
  std::map<int, std::vector<float>> fixed_inputs = {};
};

/// Checks a layer's backward pass against its own forward pass, both in float32: inputs and output weights w
/// are random, f = sum(w * output), summed in double. The noise of an element's quotient is that of the
/// outputs that moved: rounding to float32 of each, over the step. Returns one result per input that is not
/// fixed and per trainable variable, in order. What a layer of your own gets as its first test:
///   for (const GradientCheck& check : check_layer(layer, {Shape{4, 4, 2}})) EXPECT_TRUE(check.passed()) <<
///   check.to_string();
/// The layer must be new: infer, declare and prepare are called here, fuse_* before.
std::vector<GradientCheck> check_layer(Layer& layer, const std::vector<Shape>& inputs,
                                       const LayerCheckOptions& options = {});

}  // namespace lockstep
