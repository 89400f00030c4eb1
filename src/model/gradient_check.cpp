// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/philox.h"
#include "kernels/kernel_table.h"
#include "model/layer_runner.h"

namespace lockstep {

namespace {

/// A difference quotient and its rounding error.
struct Quotient {
  double value = 0, noise = 0;
};

/// All indices, or max_elements of them in ascending order: the first ones of a Fisher-Yates shuffle.
std::vector<std::int64_t> chosen(std::int64_t count, const GradientCheckOptions& options) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  if (options.max_elements <= 0 || options.max_elements >= count) return indices;
  for (std::int64_t i = 0; i < options.max_elements; ++i) {
    const PhiloxBlock words =
        philox_words(options.seed, philox_purpose("gradient_check"), 0, 0, static_cast<std::uint32_t>(i));
    const auto other = i + static_cast<std::int64_t>(words[0] % static_cast<std::uint64_t>(count - i));
    std::swap(indices[static_cast<std::size_t>(i)], indices[static_cast<std::size_t>(other)]);
  }
  indices.resize(static_cast<std::size_t>(options.max_elements));
  std::sort(indices.begin(), indices.end());
  return indices;
}

/// Compares with quotient(index, h), a central difference with half-width h. `unit_step`: see
/// GradientCheckOptions.
GradientCheck compared(std::int64_t count, FunctionRef<double(std::int64_t)> coordinate,
                       std::span<const float> gradient, FunctionRef<Quotient(std::int64_t, double)> quotient,
                       double unit_step, const GradientCheckOptions& options) {
  LOCKSTEP_CHECK(static_cast<std::int64_t>(gradient.size()) == count, "{} gradients of {} elements",
                 gradient.size(), count);
  struct Element {
    std::int64_t index;
    Quotient whole, half;
  };
  std::vector<Element> elements;
  double largest = 0;
  for (std::int64_t i : chosen(count, options)) {
    const double h = unit_step * std::max(1.0, std::abs(coordinate(i)));
    elements.push_back({i, quotient(i, h), quotient(i, h / 2)});
    largest = std::max(largest, std::abs(elements.back().whole.value));
  }
  GradientCheck result;
  result.tolerance = options.tolerance;
  for (const Element& element : elements) {
    const double numeric = element.whole.value;
    const double analytic = static_cast<double>(gradient[static_cast<std::size_t>(element.index)]);
    const double noise = element.whole.noise + options.gradient_noise * largest;
    const double magnitude = std::max(std::abs(analytic), std::abs(numeric));
    const double away = std::abs(analytic - numeric);
    double error = away <= noise ? 0.0 : (away - noise) / magnitude;
    if (!std::isfinite(away) || std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error > options.tolerance &&
        std::abs(numeric - element.half.value) >
            0.5 * options.tolerance * magnitude + element.whole.noise + element.half.noise) {
      ++result.kinks;
      continue;
    }
    ++result.checked;
    if (result.index >= 0 && error <= result.error) continue;
    result.error = error;
    result.index = element.index;
    result.analytic = analytic;
    result.numeric = numeric;
    result.noise = noise;
  }
  return result;
}

std::vector<float> random_floats(std::size_t count, std::uint64_t seed, std::string_view purpose, double low,
                                 double high) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PhiloxBlock words =
        philox_words(seed, philox_purpose(purpose), 0, 0, static_cast<std::uint32_t>(i / 4));
    values[i] = static_cast<float>(low + (high - low) * static_cast<double>(philox_uniform(words[i % 4])));
  }
  return values;
}

/// The concatenation of all.
std::vector<float> all_outputs(const LayerRunner& run) {
  std::vector<float> values;
  for (int i = 0; i < run.num_outputs(); ++i)
    values.insert(values.end(), run.output(i).begin(), run.output(i).end());
  return values;
}

/// The difference quotient of sum(weights * output) for a change of `x`, which the layer reads, by h in both
/// directions. `here` is the unchanged output. The quotient of an output with a kink in the interval is wrong
/// by at most half of the change of slope, which is counted as noise.
Quotient float_quotient(LayerRunner& run, std::span<const float> weights, std::span<const float> here,
                        float& x, double h) {
  const float before = x;
  const auto above = static_cast<float>(static_cast<double>(before) + h),
             below = static_cast<float>(static_cast<double>(before) - h);
  x = above;
  run.forward();
  const std::vector<float> high = all_outputs(run);
  x = below;
  run.forward();
  const std::vector<float> low = all_outputs(run);
  x = before;
  double square = 0;
  for (float y : low) square += static_cast<double>(y) * static_cast<double>(y);
  const double typical = std::sqrt(square / static_cast<double>(std::max<std::size_t>(low.size(), 1)));
  constexpr double kFloatEpsilon = std::numeric_limits<float>::epsilon();
  double sum = 0, rounding = 0, bends = 0;
  for (std::size_t j = 0; j < low.size(); ++j) {
    const auto weight = static_cast<double>(weights[j]), up = static_cast<double>(high[j]),
               down = static_cast<double>(low[j]);
    if (up == down) continue;
    sum += weight * (up - down);
    const double unit = std::abs(up) + std::abs(down) + typical;
    rounding += std::pow(weight * unit, 2);
    const double bend = std::abs(up + down - 2 * static_cast<double>(here[j]));
    if (bend > 0.1 * std::abs(up - down) + 4 * kFloatEpsilon * unit) bends += std::abs(weight) * bend;
  }
  const double width = static_cast<double>(above) - static_cast<double>(below);
  // Rounding errors of single outputs are independent, so their squares add. Four times the root covers all
  // but one case in ten thousand.
  return {sum / width, (4 * kFloatEpsilon * std::sqrt(rounding) + bends) / width};
}

}  // namespace

std::string GradientCheck::to_string() const {
  if (index < 0) return fmt::format("{}: no element was compared ({} at kinks)", name, kinks);
  return fmt::format(
      "{}: element {}{} is {:.9g}, central differences give {:.9g} (relative error {:.3g}, tolerance {:.3g}, "
      "noise {:.3g}); "
      "{} elements compared, {} left out at kinks",
      name, index, place.empty() ? "" : fmt::format(" ({})", place), analytic, numeric, error, tolerance,
      noise, checked, kinks);
}

GradientCheck check_gradient(FunctionRef<double(std::span<const double>)> function,
                             std::span<const double> point, std::span<const float> gradient,
                             const GradientCheckOptions& options) {
  std::vector<double> x(point.begin(), point.end());
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  auto quotient = [&](std::int64_t index, double h) {
    const auto i = static_cast<std::size_t>(index);
    const double above = point[i] + h, below = point[i] - h;
    x[i] = above;
    const double high = function(x);
    x[i] = below;
    const double low = function(x);
    x[i] = point[i];
    return Quotient{(high - low) / (above - below),
                    16 * kEpsilon * (std::abs(high) + std::abs(low)) / (above - below)};
  };
  auto coordinate = [&](std::int64_t i) { return point[static_cast<std::size_t>(i)]; };
  GradientCheck result = compared(static_cast<std::int64_t>(point.size()), coordinate, gradient, quotient,
                                  options.step > 0 ? options.step : std::cbrt(kEpsilon), options);
  result.name = "gradient";
  return result;
}

std::vector<GradientCheck> check_layer(Layer& layer, const std::vector<Shape>& inputs,
                                       const LayerCheckOptions& options) {
  std::vector<int> fixed;
  for (const auto& [input, values] : options.fixed_inputs) fixed.push_back(input);
  LayerRunner run(layer, inputs,
                  {.microshards = options.microshards,
                   .fused_inputs = options.fused_inputs,
                   .two_gradients = options.two_gradients,
                   .fixed_inputs = fixed,
                   .seed = options.seed});
  for (int i = 0; i < run.num_inputs(); ++i)
    run.input(i) = random_floats(run.input(i).size(), options.seed, fmt::format("gradient_check/input {}", i),
                                 options.low, options.high);
  for (const auto& [input, values] : options.fixed_inputs) run.input(input) = values;
  std::vector<float> weights;
  for (int i = 0; i < run.num_outputs(); ++i) {
    std::vector<float>& own = run.output_gradient(i);
    own = random_floats(own.size(), options.seed, fmt::format("gradient_check/weights {}", i), -1, 1);
    weights.insert(weights.end(), own.begin(), own.end());
  }
  run.forward();
  run.backward();
  const std::vector<float> here = all_outputs(run);
  constexpr double kFloatEpsilon = std::numeric_limits<float>::epsilon();
  const double step = options.check.step > 0 ? options.check.step : std::cbrt(kFloatEpsilon);
  std::vector<GradientCheck> results;
  auto check = [&](std::string name, float* values, std::int64_t count, std::span<const float> gradient) {
    auto coordinate = [&](std::int64_t i) { return static_cast<double>(values[i]); };
    auto quotient = [&](std::int64_t i, double h) {
      return float_quotient(run, weights, here, values[i], h);
    };
    results.push_back(compared(count, coordinate, gradient, quotient, step, options.check));
    results.back().name = std::move(name);
  };
  for (int i = 0; i < run.num_inputs(); ++i)
    if (!options.fixed_inputs.contains(i))
      check(fmt::format("input {}", i), run.input(i).data(), static_cast<std::int64_t>(run.input(i).size()),
            run.input_gradient(i));
  const std::span<const Variable> variables = run.variables().variables();
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const auto id = static_cast<VariableId>(v);
    if (variables[v].trainable)
      check(variables[v].name, run.variables().value(id), variables[v].shape.num_elements(),
            run.gradient(id));
  }
  return results;
}

GradientCheck check_loss(Loss& loss, const Shape& output, const Labels& labels,
                         const LossCheckOptions& options) {
  loss.prepare(cpu_device(), output);
  const std::int64_t count = options.samples * output.num_elements();
  std::vector<float> outputs = random_floats(static_cast<std::size_t>(count), options.seed,
                                             "gradient_check/outputs", options.low, options.high);
  std::vector<float> gradient(outputs.size());
  const auto sum = [&](float* gradients) {
    LossSums sums;
    loss.run(cpu_kernels(), Lane{}, options.samples, output, outputs.data(), labels, 1.0F, gradients, &sums);
    return sums.loss;
  };
  sum(gradient.data());
  constexpr double kFloatEpsilon = std::numeric_limits<float>::epsilon(), kDoubleStep = 1e-3,
                   kDoubleTolerance = 1e-5;
  const double precision =
      options.computes_in_double ? 16 * std::numeric_limits<double>::epsilon() : kFloatEpsilon;
  const auto quotient = [&](std::int64_t index, double h) {
    float& x = outputs[static_cast<std::size_t>(index)];
    const float before = x;
    const auto above = static_cast<float>(static_cast<double>(before) + h),
               below = static_cast<float>(static_cast<double>(before) - h);
    x = above;
    const double high = sum(nullptr);
    x = below;
    const double low = sum(nullptr);
    x = before;
    const double width = static_cast<double>(above) - static_cast<double>(below);
    return Quotient{(high - low) / width, precision * (std::abs(high) + std::abs(low)) / width};
  };
  const auto coordinate = [&](std::int64_t i) {
    return static_cast<double>(outputs[static_cast<std::size_t>(i)]);
  };
  GradientCheckOptions check = options.check;
  if (check.step <= 0) check.step = options.computes_in_double ? kDoubleStep : std::cbrt(kFloatEpsilon);
  if (options.computes_in_double && check.tolerance == LossCheckOptions().check.tolerance)
    check.tolerance = kDoubleTolerance;
  GradientCheck result = compared(count, coordinate, gradient, quotient, check.step, check);
  result.name = "outputs";
  if (result.index < 0) return result;
  const auto at = static_cast<std::size_t>(result.index);
  const std::int64_t width = output.num_elements();
  result.place = fmt::format("sample {}, output {}, where it is {}", result.index / width,
                             result.index % width, outputs[at]);
  if (labels.rows != nullptr && labels.columns == width)
    result.place += fmt::format(" and its label {}", labels.rows[at]);
  return result;
}

}  // namespace lockstep
