// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The formulas of loss_terms.h for one number or one row, shared by the CPU and GPU files. M provides abs,
// exp, log, log1p, pow and tanh of doubles. LOCKSTEP_FORMULA is the function specifier that the including
// file needs.
#pragma once

#include <cstdint>

#include "kernels/loss_terms.h"

#ifndef LOCKSTEP_FORMULA
#define LOCKSTEP_FORMULA inline
#endif

namespace lockstep {
namespace {  // each file's own, compiled for its level (isa.h)

struct LossAndSlope {
  double loss, slope;
};

/// log(1 + exp(x)), for any x.
template <typename M>
LOCKSTEP_FORMULA double softplus(double x) {
  const double rest = M::log1p(M::exp(-M::abs(x)));
  return x < 0 ? rest : x + rest;  // NaN stays NaN
}

template <typename M>
LOCKSTEP_FORMULA double sigmoid(double x) {
  const double e = M::exp(-M::abs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

template <typename M>
LOCKSTEP_FORMULA LossAndSlope focal_term(const ElementLossOptions& options, double x, double t) {
  const double p = sigmoid<M>(x), q = sigmoid<M>(-x), g = options.parameter;
  const double positive = options.alpha < 0 ? 1.0 : options.alpha,
               negative = options.alpha < 0 ? 1.0 : 1.0 - options.alpha;
  LossAndSlope result{0, 0};
  if (t != 0) {
    const double factor = t * positive * M::pow(q, g), loss = softplus<M>(-x);
    result.loss += factor * loss;
    result.slope -= factor * (g * p * loss + q);
  }
  if (t != 1) {
    const double factor = (1 - t) * negative * M::pow(p, g), loss = softplus<M>(x);
    result.loss += factor * loss;
    result.slope += factor * (g * q * loss + p);
  }
  return result;
}

template <typename M>
LOCKSTEP_FORMULA LossAndSlope element_term(const ElementLossOptions& options, double x, double t,
                                           double factor) {
  const double d = x - t;
  switch (options.kind) {
    case ElementLoss::squared:
      return {d * d, 2 * d};
    case ElementLoss::absolute:
      return {M::abs(d), d > 0 ? 1.0 : d < 0 ? -1.0 : d};
    case ElementLoss::huber: {
      const double limit = options.parameter, size = M::abs(d);
      if (size > limit) return {limit * (size - 0.5 * limit), d > 0 ? limit : -limit};
      return {0.5 * d * d, d};
    }
    case ElementLoss::log_cosh: {
      const double size = M::abs(d);
      return {size + M::log1p(M::exp(-2 * size)) - 0.69314718055994530942, M::tanh(d)};
    }
    case ElementLoss::hinge: {
      const double sign = 2 * t - 1, margin = 1 - sign * x;
      if (margin <= 0) return {0.0, 0.0};
      return {margin, margin > 0 ? -sign : margin};
    }
    case ElementLoss::sigmoid: {
      const double weight = 1 + (factor - 1) * t;
      return {(1 - t) * x + weight * softplus<M>(-x), (1 - t) - weight * sigmoid<M>(-x)};
    }
    case ElementLoss::focal:
      return focal_term<M>(options, x, t);
    case ElementLoss::identity:
      return {x, 1.0};
  }
  return {0.0, 0.0};
}

LOCKSTEP_FORMULA double weight_of(const SampleWeights& samples, std::int64_t piece) {
  return samples.values == nullptr ? 1.0 : static_cast<double>(samples.values[piece / samples.per_sample]);
}

/// The loss and slope of element e.
template <typename M>
LOCKSTEP_FORMULA LossAndSlope element_at(const ElementLossOptions& options, const float* x,
                                         const float* labels, std::int64_t e) {
  const double t = labels == nullptr ? 0.0 : static_cast<double>(labels[e]);
  if (options.ignores_nan && t != t) return {0.0, 0.0};
  const double factor =
      options.factors == nullptr ? 1.0 : static_cast<double>(options.factors[e % options.channels]);
  const LossAndSlope term = element_term<M>(options, static_cast<double>(x[e]), t, factor);
  if (options.samples.values == nullptr) return term;
  const double weight = weight_of(options.samples, e);
  if (weight == 0) return {0.0, 0.0};
  return {weight * term.loss, weight * term.slope};
}

LOCKSTEP_FORMULA LossAndSlope penalty_term(double l1, double l2, double w) {
  const double sign = w > 0 ? 1.0 : w < 0 ? -1.0 : w;
  return {0.5 * l2 * w * w + l1 * w * sign, l2 * w + l1 * sign};
}

/// Softmax of a row: its largest logit and log sum_j exp(x_j - max).
struct RowSoftmax {
  double max, log_sum;
  template <typename M>
  LOCKSTEP_FORMULA double log_probability(double x) const {
    return x - max - log_sum;
  }
};

/// The contribution of one class with label u to the row's loss. A class with u = 0 adds nothing, however
/// small its probability (0 * -inf).
template <typename M>
LOCKSTEP_FORMULA double row_term(const RowLossOptions& options, double u, double log_probability) {
  double term = u == 0 ? 0.0 : -u * log_probability;
  if (options.divergence && u > 0) term += u * M::log(u);
  return term;
}

/// The focal loss of a row whose label has log probability `log_p`; `rest` = 1 - p, summed from the other
/// classes. The slope is d loss / d x_label divided by (1 - p), so d loss / d x_j = slope * (j is the label ?
/// rest : -p_j).
template <typename M>
LOCKSTEP_FORMULA LossAndSlope focal_row(const RowLossOptions& options, double log_p, double rest) {
  const double g = options.gamma, p = M::exp(log_p), power = M::pow(rest, g);
  const double ratio = rest > 0 ? p * log_p / rest : -1.0;  // p log p / (1 - p)
  return {-power * log_p, power * (g * ratio - 1)};
}

/// The dice loss of one class from its sums over positions, 1 - (2 both + s) / (p + t + s). d loss / d p at a
/// position is at_label * t + everywhere.
struct DiceClass {
  double loss, at_label, everywhere;
};
LOCKSTEP_FORMULA DiceClass dice_class(double both, double probabilities, double labels, double smooth) {
  const double top = 2 * both + smooth, bottom = probabilities + labels + smooth;
  if (bottom == 0) return {0.0, 0.0, 0.0};  // no labels and no probabilities
  return {1 - top / bottom, -2 / bottom, top / bottom / bottom};
}

}  // namespace
}  // namespace lockstep
