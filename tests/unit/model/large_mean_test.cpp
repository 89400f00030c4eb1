// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a large mean costs the normalising layers: the errors that docs/layers.md states.
#include <algorithm>

#include "model/layer_runner.h"
#include "model_testing.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSamples = 64, kWidth = 48;
constexpr double kEpsilon = 0.001;

/// Results in double of rows that are each normalised, gamma 1 and beta 0: y, and the gradient of sum(w y).
struct Reference {
  Values y, dx;
  Reference(const Values& x, const Values& w, std::size_t rows, std::size_t count) : y(x), dx(x) {
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0, square = 0, mean_w = 0, mean_wy = 0;
      const auto n = static_cast<double>(count);
      for (std::size_t i = r * count; i < (r + 1) * count; ++i) mean += x[i] / n;
      for (std::size_t i = r * count; i < (r + 1) * count; ++i) square += (x[i] - mean) * (x[i] - mean) / n;
      const double inverse = 1 / std::sqrt(square + kEpsilon);
      for (std::size_t i = r * count; i < (r + 1) * count; ++i) {
        y[i] = (x[i] - mean) * inverse;
        mean_w += w[i] / n;
        mean_wy += w[i] * y[i] / n;
      }
      for (std::size_t i = r * count; i < (r + 1) * count; ++i)
        dx[i] = (w[i] - mean_w - y[i] * mean_wy) * inverse;
    }
  }
};

/// {samples, width} to {width, samples}: batch_norm normalises columns.
template <typename Container>
Values transposed(const Container& values) {
  Values to(values.size());
  for (std::int64_t s = 0; s < kSamples; ++s)
    for (std::int64_t c = 0; c < kWidth; ++c)
      to[static_cast<std::size_t>(c * kSamples + s)] =
          static_cast<double>(values[static_cast<std::size_t>(s * kWidth + c)]);
  return to;
}

struct Errors {
  double output = 0, gradient = 0;  ///< relative to the largest value
};

double error_of(const Values& actual, const Values& expected) {
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(actual[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

Errors errors_at(const std::string& layer_yaml, bool columns, double mean) {
  const auto layer = layer_from(layer_yaml);
  LayerRunner run(*layer, {Shape{1, kWidth}}, {.microshards = {kSamples}});
  run.input(0) = random_floats(run.input(0).size(), 3, -std::sqrt(3.0), std::sqrt(3.0));  // variance 1
  for (float& x : run.input(0)) x += static_cast<float>(mean);
  run.forward();
  run.output_gradient() = random_floats(run.output().size(), 4);
  run.backward();
  const auto view = [&](const std::vector<float>& values) {
    return columns ? transposed(values) : doubles(values);
  };
  const std::size_t rows = columns ? kWidth : kSamples, count = columns ? kSamples : kWidth;
  const Reference expected(view(run.input(0)), view(run.output_gradient()), rows, count);
  return {error_of(view(run.output()), expected.y), error_of(view(run.input_gradient(0)), expected.dx)};
}

// batch_norm keeps what the mean loses when it is rounded, so its errors do not grow with the mean.
TEST(LargeMean, ErrorsStayInTheStatedBounds) {
  struct Case {
    const char* layer;
    bool columns;
    double per_mean;  ///< growth of the bound with mean / std
  };
  for (const Case& test :
       {Case{"batch_norm: {epsilon: 0.001}", true, 0}, Case{"layer_norm: {epsilon: 0.001}", false, 1},
        Case{"group_norm: {groups: 1, epsilon: 0.001}", false, 1}}) {
    for (const double mean : {0.0, 1e2, 1e4}) {
      const Errors errors = errors_at(test.layer, test.columns, mean);
      const double bound = 0x1p-24 * (4 + test.per_mean * mean);
      EXPECT_LE(errors.output, bound) << test.layer << " at " << mean;
      EXPECT_LE(errors.gradient, bound) << test.layer << " at " << mean;
    }
  }
}

/// The variables of a batch_norm, set to random numbers; the moving mean is around `mean`.
void set_variables(LayerRunner& run, double mean) {
  const auto variables = run.variables().variables();
  for (std::size_t v = 0; v < variables.size(); ++v) {
    auto values = random_floats(static_cast<std::size_t>(variables[v].shape.num_elements()),
                                static_cast<std::uint32_t>(5 + v), 0.5, 2);
    if (variables[v].name.ends_with("/moving_mean"))
      for (float& value : values) value += static_cast<float>(mean);
    std::ranges::copy(values, run.variables().value(static_cast<VariableId>(v)));
  }
}
std::vector<float> variable(LayerRunner& run, const std::string& name) {
  const auto variables = run.variables().variables();
  for (std::size_t v = 0; v < variables.size(); ++v)
    if (variables[v].name.ends_with("/" + name)) {
      const float* first = run.variables().value(static_cast<VariableId>(v));
      return {first, first + variables[v].shape.num_elements()};
    }
  ADD_FAILURE() << name;
  return {};
}

TEST(LargeMean, GroupsOfOneSampleGiveExactlyBeta) {
  for (const double mean : {0.0, 1e4, 1e8}) {
    const auto layer = layer_from("batch_norm: {group: 1}");
    LayerRunner run(*layer, {Shape{kWidth}}, {.microshards = {1, 1, 1}});
    set_variables(run, 0);
    run.input(0) = random_floats(run.input(0).size(), 3, mean, mean + 3);
    run.forward();
    const std::vector<float> beta = variable(run, "beta");
    for (std::size_t i = 0; i < run.output().size(); ++i)
      EXPECT_EQ(run.output()[i], beta[i % beta.size()]) << i << " at " << mean;
    run.output_gradient() = random_floats(run.output().size(), 4);
    run.backward();
    for (const float dx : run.input_gradient(0)) EXPECT_LE(std::abs(dx), 1e-5F) << "the output is constant";
  }
}

TEST(LargeMean, InferenceIsExactToo) {
  for (const double mean : {0.0, 1e4}) {
    const auto layer = layer_from("batch_norm");
    LayerRunner run(*layer, {Shape{kWidth}}, {.microshards = {kSamples}, .training = false});
    set_variables(run, mean);
    run.input(0) = random_floats(run.input(0).size(), 3, mean - 2, mean + 2);
    run.forward();
    const Values gamma = doubles(variable(run, "gamma")), beta = doubles(variable(run, "beta")),
                 means = doubles(variable(run, "moving_mean")),
                 variances = doubles(variable(run, "moving_variance"));
    Values expected;
    for (std::size_t i = 0; i < run.input(0).size(); ++i) {
      const std::size_t c = i % gamma.size();
      const double centred = static_cast<double>(run.input(0)[i]) - means[c];
      expected.push_back(gamma[c] * centred / std::sqrt(variances[c] + 0.001) + beta[c]);
    }
    EXPECT_LE(error_of(doubles(run.output()), expected), 4 * 0x1p-24) << mean;
  }
}

}  // namespace
}  // namespace lockstep
