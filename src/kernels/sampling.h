// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampled losses: drawing classes, logits of single classes, the loss and its gradient. A draw compares 64
// random bits (words 0 and 1, or 2 and 3, of a Philox block) with a table of cumulative probabilities times
// 2^64, in integer arithmetic, so CPU and GPU draw the same classes. Class ids are float32 whole numbers. The
// order of sums is fixed. This header uses plain types only (isa.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

/// The distribution that classes are drawn from, in device memory.
struct ClassDistribution {
  std::int64_t classes = 0;
  /// Class c is drawn for bits in [cumulative[c - 1], cumulative[c]).
  const std::uint64_t* cumulative = nullptr;
  const double* probability = nullptr;  ///< per class
};

/// The key of a draw's random bits. A lane's step_word replaces `step`.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0, step = 0;
};

enum class SampledLoss { softmax, sigmoid };

/// One loss per sample over its own true classes and `sampled` other classes.
struct SampledProblem {
  SampledLoss loss = SampledLoss::softmax;
  std::int64_t n = 0, num_true = 1, sampled = 0;
  const float* targets = nullptr;      ///< n x num_true ids
  const float* sampled_ids = nullptr;  ///< null: column j is class j
  std::int64_t ids_stride = 0;         ///< 0: all samples share the sampled classes
  bool remove_hits = false;            ///< ignore sampled classes that are among the targets
};

class SamplingKernels {
 public:
  virtual ~SamplingKernels();

  /// Bytes of workspace that draw_distinct() needs.
  virtual std::size_t draw_bytes(std::int64_t sampled) const = 0;
  /// Draws distinct classes, in the order of their first draw; *tries = the number of draws. Draw i uses
  /// words 2 * (i % 2) and 2 * (i % 2) + 1 of block i / 2 of sample 0. sampled <= classes / 2.
  virtual void draw_distinct(const Lane&, const ClassDistribution&, const DrawKey&, std::int64_t sampled,
                             void* workspace, float* ids, double* tries) const = 0;
  /// Draws n x each classes, with repetitions. Draw j of sample s uses words of block j / 2 of sample
  /// first_sample + s, as in draw_distinct.
  virtual void draw_each(const Lane&, const ClassDistribution&, const DrawKey&, std::int64_t n,
                         std::int64_t each, std::uint32_t first_sample, float* ids) const = 0;

  /// out[i] = biases[ids[i]] (biases null: 0) - log(expected count of the class in `sampled` distinct draws)
  /// (tries null: 0). The expected count is -expm1(tries * log1p(-p)), or p * sampled if no draw was
  /// repeated. NaN where the id names no class.
  virtual void biases_of(const Lane&, const ClassDistribution&, std::int64_t count, const float* ids,
                         const float* biases, std::int64_t sampled, const double* tries,
                         float* out) const = 0;
  /// z[s][j] = x[s] . table[ids[s][j]] + offsets[s][j] for j < each; rows of ids and offsets are `each`
  /// apart. NaN where an id names none of the `rows` rows. Returns the first such position, or -1; a GPU
  /// always returns -1.
  virtual std::int64_t row_products(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units,
                                    std::int64_t rows, const float* x, const float* ids, const float* table,
                                    const float* offsets, float* z) const = 0;
  /// dx[s] += sum over j of coefficients[s][j] * table[ids[s][j]] (`=` if `add` is false).
  virtual void add_rows(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units, std::int64_t rows,
                        const float* coefficients, const float* ids, const float* table, bool add,
                        float* dx) const = 0;
  /// out[s * each + j] = coefficients[s][j] * x[s], units numbers each.
  virtual void outer_rows(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units,
                          const float* coefficients, const float* x, float* out) const = 0;
  /// y[s][j] = x[s][j] * factors[s].
  virtual void scale_rows(const Lane&, std::int64_t n, std::int64_t columns, const float* x,
                          const float* factors, float* y) const = 0;
  /// The loss from the logits of the true classes (n x num_true) and of the sampled ones (n x sampled;
  /// offsets[j] is added unless null). loss[s] = the loss of sample s; both logits are overwritten with the
  /// loss's gradients. The label of each true class is 1 / num_true. softmax: cross-entropy over both groups.
  /// sigmoid: the sum of all logistic losses. No aliasing.
  virtual void loss(const Lane&, const SampledProblem&, const float* offsets, float* true_logits,
                    float* sampled_logits, float* loss) const = 0;
};

}  // namespace lockstep
