// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Losses over a sample of the classes: drawing it, logits of single classes, the loss and its gradient. A
// class is drawn by comparing 64 random bits (words 0 and 1, or 2 and 3, of a Philox block) with a table of
// cumulative probabilities times 2^64, in whole numbers: so a GPU draws what the CPU draws. Class ids are
// float32 whole numbers. Sums run in one order. Plain types only (compiled for several instruction sets).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

/// What classes are drawn with; memory on the device.
struct ClassDistribution {
  std::int64_t classes = 0;
  const std::uint64_t* cumulative =
      nullptr;                          ///< class c is drawn for bits in [cumulative[c - 1], cumulative[c])
  const double* probability = nullptr;  ///< of each class
};

/// Where a draw's random bits come from. A lane's step_word replaces `step`.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0, step = 0;
};

enum class SampledLoss { softmax, sigmoid };

/// One loss per sample over its own true classes and `sampled` others.
struct SampledProblem {
  SampledLoss loss = SampledLoss::softmax;
  std::int64_t n = 0, num_true = 1, sampled = 0;
  const float* targets = nullptr;      ///< n x num_true ids
  const float* sampled_ids = nullptr;  ///< null: column j is class j
  std::int64_t ids_stride = 0;         ///< 0: the same sampled classes for all samples
  bool remove_hits = false;            ///< a sampled class that is one of the targets does not count
};

class SamplingKernels {
 public:
  virtual ~SamplingKernels();

  /// Bytes of workspace that draw_distinct needs.
  virtual std::size_t draw_bytes(std::int64_t sampled) const = 0;
  /// Distinct classes, in the order in which they first come up; *tries = draws until there were enough. Draw
  /// i takes words 2 * (i % 2) and the next of block i / 2 of sample 0. sampled <= classes / 2.
  virtual void draw_distinct(const Lane&, const ClassDistribution&, const DrawKey&, std::int64_t sampled,
                             void* workspace, float* ids, double* tries) const = 0;
  /// n x each classes, with repetitions; draw j of a sample takes words of block j / 2 of the sample
  /// first_sample + s.
  virtual void draw_each(const Lane&, const ClassDistribution&, const DrawKey&, std::int64_t n,
                         std::int64_t each, std::uint32_t first_sample, float* ids) const = 0;

  /// out[i] = biases[ids[i]] (biases null: 0) - (tries null: 0) log(expected count of the class in `sampled`
  /// distinct draws): -expm1(tries * log1p(-p)), or p * sampled if no draw repeated another. NaN where the id
  /// names no class.
  virtual void biases_of(const Lane&, const ClassDistribution&, std::int64_t count, const float* ids,
                         const float* biases, std::int64_t sampled, const double* tries,
                         float* out) const = 0;
  /// z[s][j] = x[s] . table[ids[s][j]] + offsets[s][j] for j < each; rows of ids and offsets lie `each`
  /// apart. NaN where an id names none of the `rows` rows. Returns the first such position, or -1; a GPU
  /// always -1.
  virtual std::int64_t row_products(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units,
                                    std::int64_t rows, const float* x, const float* ids, const float* table,
                                    const float* offsets, float* z) const = 0;
  /// dx[s] += sum over j of coefficients[s][j] * table[ids[s][j]] (`add` false: =).
  virtual void add_rows(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units, std::int64_t rows,
                        const float* coefficients, const float* ids, const float* table, bool add,
                        float* dx) const = 0;
  /// out[s * each + j] = coefficients[s][j] * x[s], units numbers each.
  virtual void outer_rows(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units,
                          const float* coefficients, const float* x, float* out) const = 0;
  /// y[s][j] = x[s][j] * factors[s].
  virtual void scale_rows(const Lane&, std::int64_t n, std::int64_t columns, const float* x,
                          const float* factors, float* y) const = 0;
  /// From logits of the true classes (n x num_true) and of the sampled ones (n x sampled, offsets[j] added
  /// unless null): loss[s]; both logits are overwritten with the loss's gradients. The true classes' label is
  /// 1 / num_true. softmax: cross-entropy over both groups. sigmoid: the sum of all logistic losses. May not
  /// alias.
  virtual void loss(const Lane&, const SampledProblem&, const float* offsets, float* true_logits,
                    float* sampled_logits, float* loss) const = 0;
};

}  // namespace lockstep
