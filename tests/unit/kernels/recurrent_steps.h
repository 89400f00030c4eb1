// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One step of each cell, forward and backward, on random numbers: what all kernels write, for comparisons
// between instruction-set levels and with a GPU. Memory is made from Values and has data(); read() brings it
// to the host.
#pragma once

#include <vector>

#include "core/error.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {

inline constexpr std::int64_t kCellRows = 4, kCellStep = 2;
inline const Values kCellLengths{3, 2, 0, 9};  ///< rows 0 and 3 take part in step 2

enum class CellKind { lstm, gru, gru_reset_after };
struct CellCase {
  CellKind kind;
  std::int64_t units;
  bool lengths, first;  ///< first: no state before
};
using Matrices = std::vector<std::vector<float>>;

inline std::vector<CellCase> cell_cases() {
  std::vector<CellCase> cases;
  for (const CellKind kind : {CellKind::lstm, CellKind::gru, CellKind::gru_reset_after})
    for (const std::int64_t units : {1, 3, 16, 17, 40})
      for (const bool lengths : {false, true})
        for (const bool first : {false, true}) cases.push_back({kind, units, lengths, first});
  return cases;
}
inline std::string describe(const CellCase& c) {
  return fmt::format("cell {}, {} units, lengths {}, first {}", static_cast<int>(c.kind), c.units, c.lengths,
                     c.first);
}

/// Forward's gates and state c, h, y; then backward's dgates, dh, dc. y is a part of wider rows.
template <typename Memory, typename Read>
Matrices lstm_step(const RecurrentKernels& kernels, const Lane& lane, const CellCase& test,
                   const Read& read) {
  const std::int64_t u = test.units, count = kCellRows * u, wide = 3 * u;
  const auto random = [](std::int64_t numbers, std::uint32_t stream) {
    return Memory(random_values(numbers, stream, -3, 3));
  };
  const Memory lengths(kCellLengths),
      gates = random(4 * count, 1), c = random(count, 2), h = random(count, 3),
      y = random(kCellRows * wide, 4), dh = random(count, 5), dc = random(count, 6),
      recurrent = random(4 * count, 7), c_before = random(count, 8), h_before = random(count, 9),
      dy = random(kCellRows * wide, 10), product = random(count, 11);
  const auto unless_first = [&](const Memory& memory) { return test.first ? nullptr : memory.data(); };
  const RecurrentStep step{kCellRows, u, kCellStep, test.lengths ? lengths.data() : nullptr};
  kernels.lstm_forward(lane, step, gates.data(), unless_first(recurrent), 1.0F, unless_first(c_before),
                       unless_first(h_before), c.data(), h.data(), {y.data() + u, wide});
  Matrices all{read(gates), read(c), read(h), read(y)};
  kernels.lstm_backward(lane, step, gates.data(), unless_first(c_before), c.data(), unless_first(product),
                        dh.data(), dc.data(), {dy.data() + u, wide});
  for (const Memory* memory : {&gates, &dh, &dc}) all.push_back(read(*memory));
  return all;
}

template <typename Memory, typename Read>
Matrices gru_step(const RecurrentKernels& kernels, const Lane& lane, const CellCase& test, const Read& read) {
  const std::int64_t u = test.units, count = kCellRows * u;
  const bool after = test.kind == CellKind::gru_reset_after;
  const auto random = [](std::int64_t numbers, std::uint32_t stream) {
    return Memory(random_values(numbers, stream, -3, 3));
  };
  const Memory lengths(kCellLengths),
      gates = random(2 * count, 1), candidate = random(count, 2), h = random(count, 3), y = random(count, 4),
      dh = random(count, 5), reset = random(count, 6), through = random(count, 7),
      recurrent = random(2 * count, 8), of_h = random(count, 9), h_before = random(count, 10),
      dy = random(count, 11), product = random(count, 12);
  const auto unless_first = [&](const Memory& memory) { return test.first ? nullptr : memory.data(); };
  const RecurrentStep step{kCellRows, u, kCellStep, test.lengths ? lengths.data() : nullptr};
  kernels.gru_gates(lane, step, gates.data(), unless_first(recurrent), unless_first(h_before),
                    after ? nullptr : reset.data());
  kernels.gru_output(lane, step, gates.data(), candidate.data(), after ? reset.data() : unless_first(of_h),
                     after, unless_first(h_before), h.data(), {y.data(), u});
  Matrices all{read(gates), read(candidate), read(h), read(y), read(reset)};
  kernels.gru_output_backward(lane, step, gates.data(), candidate.data(), after ? reset.data() : nullptr,
                              unless_first(h_before), unless_first(product), dh.data(), {dy.data(), u});
  if (!after)
    kernels.gru_gates_backward(lane, step, gates.data(), unless_first(h_before), unless_first(of_h),
                               through.data());
  for (const Memory* memory : {&gates, &candidate, &dh, &reset, &through}) all.push_back(read(*memory));
  return all;
}

template <typename Memory, typename Read>
Matrices cell_step(const RecurrentKernels& kernels, const Lane& lane, const CellCase& test,
                   const Read& read) {
  return test.kind == CellKind::lstm ? lstm_step<Memory>(kernels, lane, test, read)
                                     : gru_step<Memory>(kernels, lane, test, read);
}

}  // namespace lockstep
