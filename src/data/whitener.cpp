// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/whitener.h"

#include <algorithm>
#include <cstring>

#include "core/vector_clones.h"

namespace lockstep {

namespace {

constexpr std::int64_t kPanel = 16;   ///< components that are computed together
constexpr std::int64_t kVectors = 4;  ///< vectors that are whitened together
constexpr std::int64_t kChunk = 64;   ///< products of a partial sum
using Lanes = float __attribute__((vector_size(kPanel * sizeof(float))));
using UnalignedLanes = float __attribute__((vector_size(kPanel * sizeof(float)), aligned(4), may_alias));

/// totals = a panel's components of one vector.
LOCKSTEP_VECTOR_CLONES
void whiten_one(const float* in, std::int64_t size, const float* panel, UnalignedLanes* totals) {
  Lanes total = {};
  for (std::int64_t first = 0; first < size; first += kChunk) {
    Lanes sum = {};
    for (std::int64_t i = first; i < std::min(first + kChunk, size); ++i)
      sum += in[i] * *reinterpret_cast<const UnalignedLanes*>(panel + i * kPanel);
    total += sum;
  }
  *totals = total;
}

/// The same for kVectors vectors, which share what is read of the matrix.
LOCKSTEP_VECTOR_CLONES
void whiten_four(const float* in, std::int64_t size, const float* panel, UnalignedLanes* totals) {
  const float *const in0 = in, *const in1 = in + size, *const in2 = in1 + size, *const in3 = in2 + size;
  Lanes total0 = {}, total1 = {}, total2 = {}, total3 = {};
  for (std::int64_t first = 0; first < size; first += kChunk) {
    Lanes sum0 = {}, sum1 = {}, sum2 = {}, sum3 = {};
    for (std::int64_t i = first; i < std::min(first + kChunk, size); ++i) {
      const Lanes weights = *reinterpret_cast<const UnalignedLanes*>(panel + i * kPanel);
      sum0 += in0[i] * weights;
      sum1 += in1[i] * weights;
      sum2 += in2[i] * weights;
      sum3 += in3[i] * weights;
    }
    total0 += sum0;
    total1 += sum1;
    total2 += sum2;
    total3 += sum3;
  }
  totals[0] = total0;
  totals[1] = total1;
  totals[2] = total2;
  totals[3] = total3;
}

}  // namespace

Whitener::Whitener(const Whitening& whitening) : mean_(whitening.mean), components_(whitening.components()) {
  const std::int64_t panels = (components_ + kPanel - 1) / kPanel;
  panels_.resize(static_cast<std::size_t>(panels * kPanel * values()));
  for (std::int64_t k = 0; k < components_; ++k)
    for (std::int64_t i = 0; i < values(); ++i)
      panels_[static_cast<std::size_t>((k / kPanel * values() + i) * kPanel + k % kPanel)] =
          whitening.matrix[static_cast<std::size_t>(k * values() + i)];
}

void Whitener::apply(float* in, std::int64_t count, float* out) const {
  const std::int64_t size = values();
  for (std::int64_t v = 0; v < count; ++v)
    for (std::int64_t i = 0; i < size; ++i) in[v * size + i] -= mean_[static_cast<std::size_t>(i)];
  for (std::int64_t first = 0; first < components_; first += kPanel) {
    const float* const panel = panels_.data() + first * size;
    const std::int64_t width = std::min(kPanel, components_ - first);
    UnalignedLanes totals[kVectors];
    for (std::int64_t v = 0; v < count;) {
      const std::int64_t now = count - v >= kVectors ? kVectors : 1;
      (now == 1 ? whiten_one : whiten_four)(in + v * size, size, panel, totals);
      for (std::int64_t i = 0; i < now; ++i)
        std::memcpy(out + (v + i) * components_ + first, totals + i,
                    static_cast<std::size_t>(width) * sizeof(float));
      v += now;
    }
  }
}

}  // namespace lockstep
