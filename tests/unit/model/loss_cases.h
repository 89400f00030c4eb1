// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of every loss with its options: labels, and the formula in double. They run on the CPU here and on
// GPUs in ../kernels_cuda.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/heads.h"
#include "model_testing.h"

namespace lockstep {

enum class LabelSort { none, class_indices, zeros_and_ones, distributions, numbers };

/// The sum over all samples, from the outputs in double and labels as they reach the loss.
using LossFormula = std::function<double(const Values& x, const std::vector<std::int32_t>& indices,
                                         const std::vector<float>& rows)>;
struct LossCase {
  std::string yaml;
  Shape output;
  LabelSort labels;
  LossFormula formula;
  bool some_ignored = false;  ///< every third label
};

/// Labels of n samples. Ignored ones are as a loss gets them.
struct CaseLabels {
  CaseLabels(const LossCase& test, std::int64_t n) {
    const std::int64_t C = test.output.last(), positions = n * test.output.num_elements() / C;
    for (std::int64_t i = 0; test.labels == LabelSort::class_indices && i < positions; ++i)
      indices.push_back(test.some_ignored && i % 3 == 1 ? Loss::kIgnoredIndex
                                                        : static_cast<std::int32_t>((5 * i + 1) % C));
    const auto random = random_floats(static_cast<std::size_t>(positions * C), 9, 0.05, 1);
    for (std::int64_t i = 0;
         test.labels != LabelSort::class_indices && test.labels != LabelSort::none && i < positions * C;
         ++i) {
      float value = random[static_cast<std::size_t>(i)];
      if (test.labels == LabelSort::zeros_and_ones) value = value > 0.6F ? 1.0F : 0.0F;
      if (test.labels == LabelSort::distributions) {
        float sum = 0;
        for (std::int64_t j = i / C * C; j < i / C * C + C; ++j) sum += random[static_cast<std::size_t>(j)];
        value /= sum;
      }
      if (test.some_ignored && i % 3 == 1) value = std::numeric_limits<float>::quiet_NaN();
      rows.push_back(value);
    }
  }
  Labels labels() const {
    return {.indices = indices.empty() ? nullptr : indices.data(),
            .rows = rows.empty() ? nullptr : rows.data()};
  }
  std::vector<std::int32_t> indices;
  std::vector<float> rows;
};

inline double plain_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A formula of single numbers.
inline LossFormula each(std::function<double(double x, double t, std::size_t i)> term) {
  return [term](const Values& x, const std::vector<std::int32_t>&, const std::vector<float>& rows) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (rows.empty() || !std::isnan(rows[i]))
        sum += term(x[i], rows.empty() ? 0.0 : static_cast<double>(rows[i]), i);
    return sum;
  };
}

/// A formula of rows: probabilities p, labels t (one-hot for indices).
inline LossFormula each_row(std::size_t C, std::function<double(const Values& p, const Values& t)> term) {
  return
      [C, term](const Values& x, const std::vector<std::int32_t>& indices, const std::vector<float>& rows) {
        double sum = 0;
        for (std::size_t i = 0; i < x.size() / C; ++i) {
          if (!indices.empty() && indices[i] < 0) continue;
          Values p(C), t(C);
          double total = 0;
          for (std::size_t j = 0; j < C; ++j) total += std::exp(x[i * C + j]);
          for (std::size_t j = 0; j < C; ++j) {
            p[j] = std::exp(x[i * C + j]) / total;
            t[j] = !indices.empty() ? (static_cast<std::size_t>(indices[i]) == j ? 1.0 : 0.0)
                                    : static_cast<double>(rows[i * C + j]);
          }
          sum += term(p, t);
        }
        return sum;
      };
}

inline LossFormula dice_formula(std::size_t P, std::size_t C, bool softmax, double smooth) {
  return [=](const Values& x, const std::vector<std::int32_t>& indices, const std::vector<float>& rows) {
    double all = 0;
    for (std::size_t s = 0; s < x.size() / (P * C); ++s) {
      double loss = 0;
      bool any = false;
      for (std::size_t c = 0; c < C; ++c) {
        double both = 0, ps = 0, ts = 0;
        for (std::size_t i = s * P; i < (s + 1) * P; ++i) {
          if (!indices.empty() && indices[i] < 0) continue;
          any = true;
          double total = 0;
          for (std::size_t j = 0; j < C; ++j) total += std::exp(x[i * C + j]);
          const double p = softmax ? std::exp(x[i * C + c]) / total : plain_sigmoid(x[i * C + c]);
          const double t = !indices.empty() ? (static_cast<std::size_t>(indices[i]) == c ? 1.0 : 0.0)
                                            : static_cast<double>(rows[i * C + c]);
          both += p * t;
          ps += p;
          ts += t;
        }
        loss += 1 - (2 * both + smooth) / (ps + ts + smooth);
      }
      if (any) all += loss / static_cast<double>(C);
    }
    return all;
  };
}

inline double cross_entropy_of(const Values& p, const Values& t) {
  double sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j) sum -= t[j] * std::log(p[j]);
  return sum;
}

inline std::vector<LossCase> loss_cases() {
  using enum LabelSort;
  const auto plain = [](const Values& p, const Values& t) { return cross_entropy_of(p, t); };
  const auto smoothed = [](double s) {
    return [s](const Values& p, const Values& t) {
      Values u(t);
      for (double& value : u) value = value * (1 - s) + s / static_cast<double>(t.size());
      return cross_entropy_of(p, u);
    };
  };
  const auto weighted = [](Values w) {
    return [w](const Values& p, const Values& t) {
      double weight = 0;
      for (std::size_t j = 0; j < t.size(); ++j) weight += w[j] * t[j];
      return weight * cross_entropy_of(p, t);
    };
  };
  const auto focal_softmax = [](double gamma, Values alpha) {
    return [=](const Values& p, const Values& t) {
      for (std::size_t j = 0; j < t.size(); ++j)
        if (t[j] == 1) return -alpha[j] * std::pow(1 - p[j], gamma) * std::log(p[j]);
      return 0.0;
    };
  };
  const auto focal = [](double gamma, double a, double b) {
    return [=](double x, double t, std::size_t) {
      const double p = plain_sigmoid(x);
      return -a * t * std::pow(1 - p, gamma) * std::log(p) -
             b * (1 - t) * std::pow(p, gamma) * std::log(1 - p);
    };
  };
  const auto divergence = [](const Values& p, const Values& t) {
    double sum = 0;
    for (std::size_t j = 0; j < t.size(); ++j) sum += t[j] * std::log(t[j] / p[j]);
    return sum;
  };
  const auto sigmoid = [](Values w) {
    return [w](double x, double t, std::size_t i) {
      const double p = plain_sigmoid(x);
      return -w[i % w.size()] * t * std::log(p) - (1 - t) * std::log(1 - p);
    };
  };
  return {
      {"softmax_cross_entropy", Shape{17}, class_indices, each_row(17, plain)},
      {"softmax_cross_entropy", Shape{3}, distributions, each_row(3, plain)},
      {"softmax_cross_entropy", Shape{4, 3}, class_indices, each_row(3, plain)},
      {"{softmax_cross_entropy: {ignore_index: -100}}", Shape{5, 3}, class_indices, each_row(3, plain), true},
      {"{softmax_cross_entropy: {label_smoothing: 0.1}}", Shape{17}, class_indices,
       each_row(17, smoothed(0.1))},
      {"{softmax_cross_entropy: {label_smoothing: 0.3, ignore_index: 0}}", Shape{3, 3}, class_indices,
       each_row(3, smoothed(0.3)), true},
      {"{softmax_cross_entropy: {label_smoothing: 0.1}}", Shape{3}, distributions,
       each_row(3, smoothed(0.1))},
      {"{softmax_cross_entropy: {class_weights: [0.5, 2, 0]}}", Shape{2, 3}, class_indices,
       each_row(3, weighted({0.5, 2, 0}))},
      {"{softmax_cross_entropy: {class_weights: [0.5, 2, 1]}}", Shape{3}, distributions,
       each_row(3, weighted({0.5, 2, 1}))},
      {"kl_divergence", Shape{3, 5}, distributions, each_row(5, divergence)},
      {"{focal: {activation: softmax}}", Shape{17}, class_indices,
       each_row(17, focal_softmax(2, Values(17, 1)))},
      {"{focal: {activation: softmax, gamma: 0.5, alpha: [1, 3, 0.25], ignore_index: 9}}", Shape{5, 3},
       class_indices, each_row(3, focal_softmax(0.5, {1, 3, 0.25})), true},
      {"focal", Shape{3}, zeros_and_ones, each(focal(2, 1, 1))},
      {"{focal: {gamma: 1.5, alpha: 0.25, classes: sum}}", Shape{2, 3}, zeros_and_ones,
       each(focal(1.5, 0.25, 0.75))},
      {"sigmoid_cross_entropy", Shape{1}, zeros_and_ones, each(sigmoid({1}))},
      {"sigmoid_cross_entropy", Shape{17}, numbers, each(sigmoid({1}))},
      {"{sigmoid_cross_entropy: {pos_weight: 3}}", Shape{3}, zeros_and_ones, each(sigmoid({3}))},
      {"{sigmoid_cross_entropy: {pos_weight: [3, 0.5, 1], classes: sum, ignore_index: -1}}", Shape{2, 3},
       zeros_and_ones, each(sigmoid({3, 0.5, 1})), true},
      {"mean_squared_error", Shape{3}, numbers,
       each([](double x, double t, std::size_t) { return (x - t) * (x - t); })},
      {"{mean_squared_error: {ignore_index: -1}}", Shape{17}, numbers,
       each([](double x, double t, std::size_t) { return (x - t) * (x - t); }), true},
      {"mean_absolute_error", Shape{3}, numbers,
       each([](double x, double t, std::size_t) { return std::abs(x - t); })},
      {"{huber: {delta: 0.75}}", Shape{17}, numbers, each([](double x, double t, std::size_t) {
         const double d = std::abs(x - t);
         return d <= 0.75 ? d * d / 2 : 0.75 * (d - 0.375);
       })},
      {"log_cosh", Shape{3}, numbers,
       each([](double x, double t, std::size_t) { return std::log(std::cosh(x - t)); })},
      {"hinge", Shape{3}, zeros_and_ones,
       each([](double x, double t, std::size_t) { return std::max(0.0, 1 - (2 * t - 1) * x); })},
      {"mean", Shape{3}, none, each([](double x, double, std::size_t) { return x; })},
      {"dice", Shape{5, 3}, class_indices, dice_formula(5, 3, true, 1)},
      {"{dice: {smooth: 0.5, ignore_index: 7}}", Shape{3, 3, 3}, class_indices, dice_formula(9, 3, true, 0.5),
       true},
      {"{dice: {activation: sigmoid}}", Shape{17, 1}, zeros_and_ones, dice_formula(17, 1, false, 1)},
      {"{dice: {activation: sigmoid, smooth: 2}}", Shape{3, 2}, zeros_and_ones, dice_formula(3, 2, false, 2)},
  };
}

}  // namespace lockstep
