// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The merges of partial sums along trees, as a kernel reads them. Plain types only, for kernels of every
// instruction set and for *.cu files.
#pragma once

#include <cstdint>

namespace lockstep {

/// Inputs are partial sums of some doubles each. They are merged level by level; then some of them are
/// results. The merges of a level are independent of each other.
struct TreeMerges {
  /// Input `from` is merged into input `into`, which is the left operand.
  struct Step {
    std::int32_t into, from;
  };
  /// Input `input` is a result, which is written to double `place` of the results' memory.
  struct Output {
    std::int64_t place;
    std::int64_t input;
  };

  std::int32_t inputs = 0, levels = 0, outputs = 0;
  const std::int64_t* places = nullptr;      ///< where each input begins, in doubles
  const Step* steps = nullptr;               ///< ordered by level
  const std::int32_t* level_ends = nullptr;  ///< one past the last step of each level
  const Output* results = nullptr;
};

/// Runs the merges where memory is the host's: merge(into, from) for each step, then copies `width` doubles
/// to each result. No result may lie where an input lies.
template <typename Merge>
void run_merges(const TreeMerges& tree, std::int64_t width, double* in, double* out, const Merge& merge) {
  const std::int32_t steps = tree.levels == 0 ? 0 : tree.level_ends[tree.levels - 1];
  for (std::int32_t s = 0; s < steps; ++s)
    merge(in + tree.places[tree.steps[s].into], in + tree.places[tree.steps[s].from]);
  for (std::int32_t k = 0; k < tree.outputs; ++k) {
    const double* from = in + tree.places[tree.results[k].input];
    double* to = out + tree.results[k].place;
    for (std::int64_t i = 0; i < width; ++i) to[i] = from[i];
  }
}

}  // namespace lockstep
