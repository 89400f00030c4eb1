// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampled losses on the CPU, per instruction-set level (isa.h). Sums along a row use 16 float32 columns,
// which are then added in order in double.
#include "kernels/sampling.h"

#include "kernels/isa.h"
#include "kernels/vec_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

using L = Lanes<Vec>;
constexpr int kColumns = 16;
constexpr int kPieces = kColumns / kLanes;

/// The row that an id names, or -1.
inline std::int64_t row_of(float id, std::int64_t rows) {
  if (!(id >= 0.0F && id < static_cast<float>(rows))) return -1;
  const std::int64_t row = static_cast<std::int64_t>(id);
  return static_cast<float>(row) == id ? row : -1;
}

/// Philox4x32-10 (core/philox.h).
inline void philox(const DrawKey& key, std::uint32_t step, std::uint32_t sample, std::uint32_t block,
                   std::uint64_t* pairs) {
  std::uint32_t c0 = block, c1 = sample, c2 = step, c3 = key.purpose;
  std::uint32_t key0 = static_cast<std::uint32_t>(key.seed),
                key1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * c0,
                        product1 = std::uint64_t{0xCD9E8D57U} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<std::uint32_t>(product0);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  pairs[0] = static_cast<std::uint64_t>(c0) << 32 | c1;
  pairs[1] = static_cast<std::uint64_t>(c2) << 32 | c3;
}

/// The first class whose cumulative number is above the bits.
inline std::int64_t class_of(const ClassDistribution& distribution, std::uint64_t bits) {
  std::int64_t first = 0, last = distribution.classes - 1;
  while (first < last) {
    const std::int64_t middle = (first + last) / 2;
    if (bits < distribution.cumulative[middle])
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

inline double sum_of_columns(const Vec* sums) {
  float columns[kColumns];
  for (int k = 0; k < kPieces; ++k) L::store(columns + k * kLanes, sums[k]);
  double sum = 0.0;
  for (float column : columns) sum += static_cast<double>(column);
  return sum;
}

inline double dot(const float* a, const float* b, std::int64_t count) {
  Vec sums[kPieces] = {};
  std::int64_t j = 0;
  for (; j + kColumns <= count; j += kColumns)
#pragma GCC unroll 4
    for (int k = 0; k < kPieces; ++k) sums[k] += L::load(a + j + k * kLanes) * L::load(b + j + k * kLanes);
  double sum = sum_of_columns(sums);
  for (; j < count; ++j) sum += static_cast<double>(a[j] * b[j]);
  return sum;
}

/// x[j] = term(x[j]) in registers. Returns the sum of the values that `term` adds to its second argument.
/// `filler` pads the last registers of the row.
template <typename Term>
inline double sum_terms(float* x, std::int64_t count, float filler, const Term& term) {
  Vec sums[kPieces] = {};
  std::int64_t j = 0;
  for (; j + kColumns <= count; j += kColumns)
#pragma GCC unroll 4
    for (int k = 0; k < kPieces; ++k)
      L::store(x + j + k * kLanes, term(L::load(x + j + k * kLanes), sums[k]));
  if (j < count) {
    const int rest = static_cast<int>(count - j);
    float padded[kColumns];
    for (int i = 0; i < kColumns; ++i) padded[i] = i < rest ? x[j + i] : filler;
    for (int k = 0; k < kPieces; ++k)
      L::store(padded + k * kLanes, term(L::load(padded + k * kLanes), sums[k]));
    for (int i = 0; i < rest; ++i) x[j + i] = padded[i];
  }
  return sum_of_columns(sums);
}

/// Adds the offsets to z; with remove_hits, sets minus infinity where a sampled class is one of the targets.
inline void complete_logits(const SampledProblem& p, std::int64_t s, const float* offsets, float* z) {
  if (offsets != nullptr)
    for (std::int64_t j = 0; j < p.sampled; ++j) z[j] += offsets[j];
  if (!p.remove_hits) return;
  for (std::int64_t t = 0; t < p.num_true; ++t) {
    const float target = p.targets[s * p.num_true + t];
    if (p.sampled_ids == nullptr) {
      const std::int64_t column = row_of(target, p.sampled);
      if (column >= 0) z[column] = -__builtin_inff();
      continue;
    }
    const float* ids = p.sampled_ids + s * p.ids_stride;
    for (std::int64_t j = 0; j < p.sampled; ++j) z[j] = ids[j] == target ? -__builtin_inff() : z[j];
  }
}

inline float softmax_loss(const SampledProblem& p, float* truth, float* z) {
  float max = truth[0];
  for (std::int64_t t = 1; t < p.num_true; ++t) max = truth[t] > max ? truth[t] : max;
  for (std::int64_t j = 0; j < p.sampled; ++j) max = z[j] > max ? z[j] : max;
  const double share = 1.0 / static_cast<double>(p.num_true), top = static_cast<double>(max);
  double sum = sum_terms(z, p.sampled, -__builtin_inff(), [max](Vec x, Vec& total) {
    const Vec term = exp_of_nonpositive(x - max);
    total += term;
    return term;
  });
  double expected = 0.0;
  for (std::int64_t t = 0; t < p.num_true; ++t) {
    const double above = static_cast<double>(truth[t]) - top;
    sum += __builtin_exp(above);
    expected += share * above;
  }
  for (std::int64_t t = 0; t < p.num_true; ++t)
    truth[t] = static_cast<float>(__builtin_exp(static_cast<double>(truth[t]) - top) / sum - share);
  const float factor = static_cast<float>(1.0 / sum);
  for (std::int64_t j = 0; j < p.sampled; ++j) z[j] *= factor;
  return static_cast<float>(__builtin_log(sum) - expected);
}

inline float sigmoid_loss(const SampledProblem& p, float* truth, float* z) {
  const double share = 1.0 / static_cast<double>(p.num_true);
  double sum = sum_terms(z, p.sampled, -__builtin_inff(), [](Vec x, Vec& total) {
    const Vec zero = {};
    const Vec e = exp_of_nonpositive(x < 0.0F ? x : -x);
    total += (x < 0.0F ? zero : x) + log1p_of_fraction(e);
    const Vec below = e / (e + 1.0F);
    return x < 0.0F ? below : 1.0F - below;
  });
  for (std::int64_t t = 0; t < p.num_true; ++t) {
    const double x = static_cast<double>(truth[t]);
    const double e = __builtin_exp(x < 0.0 ? x : -x);
    sum += (x < 0.0 ? 0.0 : x) - x * share + __builtin_log1p(e);
    truth[t] = static_cast<float>((x < 0.0 ? e : 1.0) / (1.0 + e) - share);
  }
  return static_cast<float>(sum);
}

class Sampling final : public SamplingKernels {
 public:
  std::size_t draw_bytes(std::int64_t sampled) const override {
    return static_cast<std::size_t>(slots(sampled)) * sizeof(std::int32_t);
  }

  void draw_distinct(const Lane& lane, const ClassDistribution& distribution, const DrawKey& key,
                     std::int64_t sampled, void* workspace, float* ids, double* tries) const override {
    const std::uint32_t step = lane.step_word != nullptr ? *lane.step_word : key.step;
    const std::int64_t size = slots(sampled);
    std::int32_t* table = static_cast<std::int32_t*>(workspace);  // a hash table with open addressing
    for (std::int64_t i = 0; i < size; ++i) table[i] = -1;
    std::int64_t count = 0;
    std::uint64_t draw = 0, pairs[2] = {};
    for (; count < sampled; ++draw) {
      if (draw % 2 == 0) philox(key, step, 0, static_cast<std::uint32_t>(draw / 2), pairs);
      const auto drawn = static_cast<std::int32_t>(class_of(distribution, pairs[draw % 2]));
      std::int64_t slot = (static_cast<std::int64_t>(drawn) * 0x9E3779B1) & (size - 1);
      while (table[slot] >= 0 && table[slot] != drawn) slot = (slot + 1) & (size - 1);
      if (table[slot] == drawn) continue;
      table[slot] = drawn;
      ids[count++] = static_cast<float>(drawn);
    }
    *tries = static_cast<double>(draw);
  }

  void draw_each(const Lane& lane, const ClassDistribution& distribution, const DrawKey& key, std::int64_t n,
                 std::int64_t each, std::uint32_t first_sample, float* ids) const override {
    const std::uint32_t step = lane.step_word != nullptr ? *lane.step_word : key.step;
    std::uint64_t pairs[2] = {};
    for (std::int64_t s = 0; s < n; ++s)
      for (std::int64_t j = 0; j < each; ++j) {
        if (j % 2 == 0)
          philox(key, step, first_sample + static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(j / 2),
                 pairs);
        ids[s * each + j] = static_cast<float>(class_of(distribution, pairs[j % 2]));
      }
  }

  void biases_of(const Lane&, const ClassDistribution& distribution, std::int64_t count, const float* ids,
                 const float* biases, std::int64_t sampled, const double* tries, float* out) const override {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = row_of(ids[i], distribution.classes);
      if (row < 0) {
        out[i] = __builtin_nanf("");
        continue;
      }
      const float bias = biases == nullptr ? 0.0F : biases[row];
      out[i] = bias;
      if (tries == nullptr) continue;
      const double p = distribution.probability[row], few = static_cast<double>(sampled);
      const double expected = *tries == few ? p * few : -__builtin_expm1(*tries * __builtin_log1p(-p));
      out[i] = static_cast<float>(static_cast<double>(bias) - __builtin_log(expected));
    }
  }

  std::int64_t row_products(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units,
                            std::int64_t rows, const float* x, const float* ids, const float* table,
                            const float* offsets, float* z) const override {
    std::int64_t bad = -1;
    for (std::int64_t s = 0; s < n; ++s)
      for (std::int64_t j = s * each; j < (s + 1) * each; ++j) {
        const std::int64_t row = row_of(ids[j], rows);
        if (row < 0 && bad < 0) bad = j;
        z[j] = row < 0 ? __builtin_nanf("")
                       : static_cast<float>(dot(x + s * units, table + row * units, units) +
                                            static_cast<double>(offsets[j]));
      }
    return bad;
  }

  void add_rows(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units, std::int64_t rows,
                const float* coefficients, const float* ids, const float* table, bool add,
                float* dx) const override {
    for (std::int64_t s = 0; s < n; ++s) {
      float* to = dx + s * units;
      if (!add)
        for (std::int64_t u = 0; u < units; ++u) to[u] = 0.0F;
      for (std::int64_t j = s * each; j < (s + 1) * each; ++j) {
        const std::int64_t row = row_of(ids[j], rows);
        const float* from = table + (row < 0 ? 0 : row) * units;
        const float coefficient = row < 0 ? __builtin_nanf("") : coefficients[j];
        for (std::int64_t u = 0; u < units; ++u) to[u] += coefficient * from[u];
      }
    }
  }

  void outer_rows(const Lane&, std::int64_t n, std::int64_t each, std::int64_t units,
                  const float* coefficients, const float* x, float* out) const override {
    for (std::int64_t i = 0; i < n * each; ++i) {
      const float* from = x + i / each * units;
      for (std::int64_t u = 0; u < units; ++u) out[i * units + u] = coefficients[i] * from[u];
    }
  }

  void scale_rows(const Lane&, std::int64_t n, std::int64_t columns, const float* x, const float* factors,
                  float* y) const override {
    for (std::int64_t s = 0; s < n; ++s)
      for (std::int64_t j = s * columns; j < (s + 1) * columns; ++j) y[j] = x[j] * factors[s];
  }

  void loss(const Lane&, const SampledProblem& p, const float* offsets, float* true_logits,
            float* sampled_logits, float* loss) const override {
    for (std::int64_t s = 0; s < p.n; ++s) {
      float* truth = true_logits + s * p.num_true;
      float* z = sampled_logits + s * p.sampled;
      complete_logits(p, s, offsets, z);
      loss[s] = p.loss == SampledLoss::softmax ? softmax_loss(p, truth, z) : sigmoid_loss(p, truth, z);
    }
  }

 private:
  static std::int64_t slots(std::int64_t sampled) {
    std::int64_t size = 16;
    while (size < 2 * sampled) size *= 2;
    return size;
  }
};

}  // namespace

const SamplingKernels& sampling_kernels() {
  static const Sampling kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
