// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One step of each cell, forward and backward, on random numbers. Returns everything the kernels write, for
// comparisons between instruction-set levels and with a GPU, in each activation type. Memory<T> is
// constructed from Values and has data(); read() copies it to the host as float32.
#pragma once

#include <vector>

#include "core/error.h"
#include "unit/kernels/stored_testing.h"

namespace lockstep {

inline constexpr std::int64_t kCellRows = 4, kCellStep = 2;
inline const Values kCellLengths{3, 2, 0, 9};  ///< rows 0 and 3 are active in step 2

enum class CellKind { lstm, gru, gru_reset_after };
struct CellCase {
  CellKind kind;
  std::int64_t units;
  bool lengths, first;  ///< first: no previous state
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

/// Data arguments are in T, with initial numbers rounded to Rounded; everything else is float32. In float32
/// the gradients of the gates alias the gates; otherwise they do not.
template <typename T, typename Rounded, template <typename> class Memory>
struct CellMemory {
  static Values values(std::int64_t numbers, std::uint32_t stream) {
    return random_values(numbers, stream, -3, 3);
  }
  static Memory<float> floats(std::int64_t numbers, std::uint32_t stream) {
    return Memory<float>(values(numbers, stream));
  }
  static Memory<T> data(std::int64_t numbers, std::uint32_t stream) {
    Values rounded = values(numbers, stream);
    for (double& value : rounded) value = to_float(from_float<Rounded>(static_cast<float>(value)));
    return Memory<T>(rounded);
  }
  static T* gradient(const Memory<float>& of, const Memory<T>& apart) {
    if constexpr (std::is_same_v<T, float>)
      return of.data();
    else
      return apart.data();
  }
};

/// Returns forward's c, h and y; then backward's dgates, dh and dc, and forward's gates unless they are
/// overwritten. y is a part of wider rows.
template <typename T, typename Rounded, template <typename> class Memory, typename Read>
Matrices lstm_step(const RecurrentKernels& kernels, const Lane& lane, const CellCase& test,
                   const Read& read) {
  using M = CellMemory<T, Rounded, Memory>;
  const std::int64_t u = test.units, count = kCellRows * u, wide = 3 * u;
  const Memory<float> lengths(kCellLengths);
  const Memory<float> gates = M::floats(4 * count, 1), c = M::floats(count, 2), dh = M::floats(count, 5),
                      dc = M::floats(count, 6), recurrent = M::floats(4 * count, 7),
                      c_before = M::floats(count, 8), product = M::floats(count, 11);
  const Memory<T> h = M::data(count, 3), y = M::data(kCellRows * wide, 4), h_before = M::data(count, 9),
                  dy = M::data(kCellRows * wide, 10), apart = M::data(4 * count, 12);
  const auto unless_first = [&](const auto& memory) { return test.first ? nullptr : memory.data(); };
  const RecurrentStep step{kCellRows, u, kCellStep, test.lengths ? lengths.data() : nullptr};
  kernels.lstm_forward(lane, step, gates.data(), unless_first(recurrent), 1.0F, unless_first(c_before),
                       unless_first(h_before), c.data(), h.data(), {y.data() + u, wide});
  Matrices all{read(c), read(h), read(y)};
  kernels.lstm_backward(lane, step, gates.data(), M::gradient(gates, apart), unless_first(c_before), c.data(),
                        unless_first(product), dh.data(), dc.data(), {dy.data() + u, wide});
  all.push_back(std::is_same_v<T, float> ? read(gates) : read(apart));
  for (const auto* memory : {&dh, &dc}) all.push_back(read(*memory));
  return all;
}

/// Returns forward's h, y and reset_h; then backward's gradients.
template <typename T, typename Rounded, template <typename> class Memory, typename Read>
Matrices gru_step(const RecurrentKernels& kernels, const Lane& lane, const CellCase& test, const Read& read) {
  using M = CellMemory<T, Rounded, Memory>;
  const std::int64_t u = test.units, count = kCellRows * u;
  const bool after = test.kind == CellKind::gru_reset_after;
  const Memory<float> lengths(kCellLengths);
  const Memory<float> gates = M::floats(2 * count, 1), candidate = M::floats(count, 2),
                      h = M::floats(count, 3), dh = M::floats(count, 5), reset_product = M::floats(count, 6),
                      through = M::floats(count, 7), recurrent = M::floats(2 * count, 8),
                      of_h = M::floats(count, 9), h_before = M::floats(count, 10),
                      product = M::floats(count, 12);
  const Memory<T> y = M::data(count, 4), reset_h = M::data(count, 13), factor = M::data(count, 14),
                  dy = M::data(count, 11), dgates = M::data(2 * count, 15), dcandidate = M::data(count, 16),
                  dproduct = M::data(count, 17), rounded_h = M::data(count, 18);
  const auto unless_first = [&](const auto& memory) { return test.first ? nullptr : memory.data(); };
  const RecurrentStep step{kCellRows, u, kCellStep, test.lengths ? lengths.data() : nullptr};
  kernels.gru_gates(lane, step, gates.data(), unless_first(recurrent), unless_first(factor),
                    after ? Data() : Data(reset_h.data()));
  kernels.gru_output(lane, step, gates.data(), candidate.data(),
                     after ? reset_product.data() : unless_first(of_h), after, unless_first(h_before),
                     h.data(), rounded_h.data(), {y.data(), u});
  Matrices all{read(h), read(rounded_h), read(y), read(reset_h)};
  T* const to_gates = M::gradient(gates, dgates);
  kernels.gru_output_backward(lane, step,
                              {.gates = gates.data(),
                               .candidate = candidate.data(),
                               .reset_product = after ? reset_product.data() : nullptr,
                               .h_before = unless_first(h_before),
                               .dgates = to_gates,
                               .dcandidate = M::gradient(candidate, dcandidate),
                               .dreset_product = M::gradient(reset_product, dproduct)},
                              unless_first(product), nullptr, dh.data(), {dy.data(), u});
  if (!after)
    kernels.gru_gates_backward(lane, step, gates.data(), unless_first(factor), unless_first(of_h), to_gates,
                               through.data());
  constexpr bool kInPlace = std::is_same_v<T, float>;
  all.push_back(kInPlace ? read(gates) : read(dgates));
  all.push_back(kInPlace ? read(candidate) : read(dcandidate));
  if (after) all.push_back(kInPlace ? read(reset_product) : read(dproduct));
  for (const auto* memory : {&dh, &through}) all.push_back(read(*memory));
  return all;
}

template <typename T, typename Rounded, template <typename> class Memory, typename Read>
Matrices cell_step(const RecurrentKernels& kernels, const Lane& lane, const CellCase& test,
                   const Read& read) {
  return test.kind == CellKind::lstm ? lstm_step<T, Rounded, Memory>(kernels, lane, test, read)
                                     : gru_step<T, Rounded, Memory>(kernels, lane, test, read);
}
template <template <typename> class Memory, typename Read>
Matrices cell_step_in(DType type, const RecurrentKernels& kernels, const Lane& lane, const CellCase& test,
                      const Read& read) {
  Matrices all;
  with_type(type, [&]<typename T>(T) { all = cell_step<T, T, Memory>(kernels, lane, test, read); });
  return all;
}

}  // namespace lockstep
