// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares gradients with central differences
//   n = (f(x + h e_i) - f(x - h e_i)) / 2h.
// The truncation error of n is h^2 f''' / 6, its noise is the rounding error of f divided by h. With h the
// cube root of f's precision, scaled by |x_i|, both have the same size. An element passes if |a - n| <=
// tolerance * max(|a|, |n|) + noise, where a is the analytic gradient and the noise is computed. NaN never
// passes.
//
// Kinks (relu at 0, max_pool at a tie): where a kink lies between x - h and x + h, the quotients with h and
// with h / 2 differ by more than those of a smooth function. Such elements are skipped and counted. A point
// that lies exactly on a kink is not detected; random points avoid that.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "model/layer.h"
#include "model/loss.h"

namespace lockstep {

struct GradientCheckOptions {
  double tolerance = 1e-4;  ///< relative; the gradient is float32, sums of k terms need about sqrt(k) * 6e-8
  /// Step per unit of max(|x_i|, 1); 0: the cube root of f's precision (6e-6 in double, 5e-3 in float32).
  double step = 0;
  std::int64_t max_elements = 0;  ///< elements to check at most, chosen at random with `seed`; 0: all
  std::uint64_t seed = 0;
  /// Rounding error of the analytic gradient, absolute, as a fraction of the largest |n| among the elements.
  double gradient_noise = 1e-6;
};

/// The result of a check: the worst element. `error` is max(0, |a - n| - noise) / max(|a|, |n|), infinite for
/// NaN.
struct GradientCheck {
  std::string name;  ///< the variable of the differentiation: "input 0", "dense1/kernel"
  double error = 0, tolerance = 0;
  std::int64_t index = -1;  ///< of the worst element; -1: no element was checked
  double analytic = 0, numeric = 0, noise = 0;
  std::string place = {};               ///< of the worst element, in words: "sample 1, output 2, where ..."
  std::int64_t checked = 0, kinks = 0;  ///< elements compared, elements skipped

  /// All compared elements pass, and at least three of four chosen elements were compared.
  bool passed() const { return checked > 0 && error <= tolerance && kinks * 3 <= checked; }
  /// "dense1/kernel: element 7 is 0.25, central differences give 0.5 (relative error ...)". Of a loss also
  /// the sample and the output that the element is, and their values.
  std::string to_string() const;
};

/// `function` is a scalar function of a vector, in double precision; `gradient` is its gradient at `point`.
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
  /// Inputs without a gradient (indices, lengths), by number: their values for the whole batch.
  std::map<int, std::vector<float>> fixed_inputs = {};
};

/// Checks a layer's backward pass against its own forward pass, both in float32. Inputs and output weights w
/// are random, and f = sum(w * output), summed in double. The noise of a quotient is the float32 rounding
/// error of the outputs that changed, divided by the step. Returns one result per input that is not fixed,
/// then one per trainable variable. This is the first test of a new layer:
///   for (const GradientCheck& check : check_layer(layer, {Shape{4, 4, 2}}))
///     EXPECT_TRUE(check.passed()) << check.to_string();
/// infer, declare and prepare are called here, so the layer must be new; call fuse() before.
std::vector<GradientCheck> check_layer(Layer& layer, const std::vector<Shape>& inputs,
                                       const LayerCheckOptions& options = {});

struct LossCheckOptions {
  GradientCheckOptions check = {.tolerance = 1e-2};
  std::int64_t samples = 3;
  std::uint64_t seed = 1;     ///< of outputs
  double low = -2, high = 2;  ///< outputs are uniform between these
  /// The loss computes in double, as formulas and Lockstep's own losses do: differences are those of doubles,
  /// with a step of 1e-3, and the tolerance is 1e-5 unless `check` has another one than the default.
  bool computes_in_double = false;
};

/// Checks a loss's gradient against the sum that it computes, on the CPU, element by element. `labels` are
/// those of `options.samples` samples in the form of form(), as they reach run(). f is the sum of the losses,
/// in double; unless the loss computes in double, the noise of a quotient is the float32 rounding error of f,
/// divided by the step. This is the first test of a new loss:
///   const GradientCheck check = check_loss(*make_loss(node), Shape{5}, {.rows = labels.data()});
///   EXPECT_TRUE(check.passed()) << check.to_string();
/// prepare() is called here.
GradientCheck check_loss(Loss& loss, const Shape& output, const Labels& labels,
                         const LossCheckOptions& options = {});

}  // namespace lockstep
