// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For files compiled per instruction-set level (isa.h): a vector of floats as wide as the level's registers,
// and panels, which cut a rows x channels matrix into pieces of 64 columns.
//
// A matrix with few channels is treated as a wider one: with C = 16, four adjacent rows form one row of 64
// columns, and column j is channel j % 16. So the running sums of a panel stay in registers for any number of
// channels. Vector elements never depend on each other, so the register width changes no bit.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstdint>

#include "core/half.h"

namespace lockstep {
namespace {  // each file's own: its width is that of the level it is compiled for

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

constexpr int kPanelColumns = 64;

using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));
using UnalignedVec = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

using Bits = std::uint32_t __attribute__((vector_size(kLanes * sizeof(float))));
using Halves = std::uint16_t __attribute__((vector_size(kLanes * sizeof(std::uint16_t))));
using UnalignedHalves =
    std::uint16_t __attribute__((vector_size(kLanes * sizeof(std::uint16_t)), aligned(2), may_alias));

/// The unit of the kernels' inner loops: a register of columns, or one column. In memory, columns have any
/// type of core/half.h; conversions have the bits of core/half.h.
template <typename V>
struct Lanes;
template <>
struct Lanes<Vec> {
  static constexpr int kWidth = kLanes;
  static Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
  static void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }

  static Vec load(const BFloat16* p) { return reinterpret_cast<Vec>(bits_at(p) << 16); }
  static void store(BFloat16* p, Vec v) {
    const Bits bits = reinterpret_cast<Bits>(v);
    const Bits rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    put(p, (bits & 0x7FFFFFFFU) > 0x7F800000U ? (bits >> 16) | 0x40U : rounded);
  }

#if defined(__AVX512F__)
  // AVX-512 converts float16 in one instruction instead of about twelve, with the same bits. It quiets NaN.
  static Vec load(const Float16* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return reinterpret_cast<Vec>(_mm512_maskz_cvtph_ps(0xFFFF, halves));
  }
  static void store(Float16* p, Vec v) {
    const __m256i halves = _mm512_maskz_cvtps_ph(0xFFFF, reinterpret_cast<__m512>(v),
                                                 _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halves);
  }
#else
  static Vec load(const Float16* p) {
    const Bits bits = bits_at(p), magnitude = bits & 0x7FFFU;
    const Vec shifted = reinterpret_cast<Vec>(magnitude << 13) * 0x1p112F;
    const Bits special = magnitude > 0x7C00U    ? Bits{} + 0x7FC00000U
                         : magnitude == 0x7C00U ? Bits{} + 0x7F800000U
                                                : Bits{};
    return reinterpret_cast<Vec>(reinterpret_cast<Bits>(shifted) | special | ((bits & 0x8000U) << 16));
  }
  static void store(Float16* p, Vec v) {
    const Bits bits = reinterpret_cast<Bits>(v), magnitude = bits & 0x7FFFFFFFU;
    const Bits subnormal = reinterpret_cast<Bits>(reinterpret_cast<Vec>(magnitude) + 0.5F) - 0x3F000000U;
    const Bits normal = (magnitude + 0xC8000FFFU + ((magnitude >> 13) & 1U)) >> 13;
    const Bits special = magnitude > 0x7F800000U ? 0x7E00U | ((magnitude >> 13) & 0x3FFU) : Bits{} + 0x7C00U;
    const Bits rounded = magnitude >= 0x47800000U ? special : magnitude < 0x38800000U ? subnormal : normal;
    put(p, rounded | ((bits >> 16) & 0x8000U));
  }
#endif

 private:
  template <typename Half>
  static Bits bits_at(const Half* p) {
    return __builtin_convertvector(*reinterpret_cast<const UnalignedHalves*>(p), Bits);
  }
  template <typename Half>
  static void put(Half* p, Bits bits) {
    *reinterpret_cast<UnalignedHalves*>(p) = __builtin_convertvector(bits, Halves);
  }
};
template <>
struct Lanes<float> {
  static constexpr int kWidth = 1;
  template <typename T>
  static float load(const T* p) {
    return to_float(*p);
  }
  static float load(const Float16* p) {  // quiets NaN, as the register version does
    const std::uint32_t quiet = (p->bits & 0x7FFFU) > 0x7C00U ? 0x00400000U : 0U;
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, to_float(*p)) | quiet);
  }
  template <typename T>
  static void store(T* p, float v) {
    *p = from_float<T>(v);
  }
};

/// One integer per vector element.
template <typename V>
struct IntegerLanes;
template <>
struct IntegerLanes<Vec> {
  using Type = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
  using Unaligned =
      std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t)), aligned(4), may_alias));
  static Type load(const std::int32_t* p) { return *reinterpret_cast<const Unaligned*>(p); }
  static void store(std::int32_t* p, Type v) { *reinterpret_cast<Unaligned*>(p) = v; }
};
template <>
struct IntegerLanes<float> {
  using Type = std::int32_t;
  static std::int32_t load(const std::int32_t* p) { return *p; }
  static void store(std::int32_t* p, std::int32_t v) { *p = v; }
};

/// Returns `next` where value is larger than best, else `now`. The first NaN counts as larger than everything
/// and stays.
template <typename V, typename W>
inline W where_larger(V value, V best, W next, W now) {
  const W larger = value <= best ? now : next;
  return best == best ? larger : now;
}

/// Calls body(i, v) for elements i to i + width of v. v is a zero Vec, or a zero float for the remainder.
template <typename Body>
inline void for_each_vector(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, Vec{});
  for (; i < count; ++i) body(i, 0.0F);
}

/// `rows` rows of `width` columns. The first row is at element `offset`; rows are `stride` elements apart.
/// Column i belongs to channel (channel + i) % channels.
struct Panel {
  std::int64_t offset, rows, stride, channel;
  int width;  ///< kPanelColumns, or less; kernels then use Lanes<float>
};

constexpr std::int64_t greatest_common_divisor(std::int64_t a, std::int64_t b) {
  return b == 0 ? a : greatest_common_divisor(b, a % b);
}

/// Calls body(panel, v) for each panel, in a fixed order. v is a Vec for panels of full width, else a float.
/// The panels partition the elements. With 64 channels or more, every channel lies in one panel.
template <typename Body>
inline void for_each_panel(std::int64_t rows, std::int64_t channels, const Body& body) {
  std::int64_t wide_rows = rows, wide = channels, full = channels / kPanelColumns * kPanelColumns;
  Panel rest{full, rows, channels, full, static_cast<int>(channels - full)};
  if (channels < kPanelColumns) {
    const std::int64_t side_by_side = kPanelColumns / greatest_common_divisor(channels, kPanelColumns);
    wide_rows = rows / side_by_side;
    wide = channels * side_by_side;
    full = wide_rows > 0 ? wide : 0;
    const std::int64_t done = wide_rows * side_by_side;
    rest = {done * channels, rows - done, channels, 0, done < rows ? static_cast<int>(channels) : 0};
  }
  // Each type of body is called from one place only: it is inlined there, and a large one compiles slowly.
  for (std::int64_t column = 0; column < full; column += kPanelColumns)
    body(Panel{column, wide_rows, wide, column % channels, kPanelColumns}, Vec{});
  if (rest.width > 0) body(rest, 0.0F);
}

/// Registers (or columns) in a panel's row. For full panels it is a constant, so that loops over it unroll.
template <typename V>
inline int pieces(const Panel& panel) {
  return Lanes<V>::kWidth == 1 ? panel.width : kPanelColumns / Lanes<V>::kWidth;
}
template <typename V>
constexpr int kMaxPieces = kPanelColumns / Lanes<V>::kWidth;

/// Calls body(k) for each piece of a panel's row. For a full panel the loop is unrolled, so that arrays
/// indexed by k stay in registers. For single columns it is not: unrolling makes it no faster and takes most
/// of the time to compile.
template <typename V, typename Body>
inline void for_each_piece(const Panel& panel, const Body& body) {
  if constexpr (Lanes<V>::kWidth == 1) {
    for (int k = 0; k < panel.width; ++k) body(k);
  } else {
#pragma GCC unroll 16
    for (int k = 0; k < kMaxPieces<V>; ++k) body(k);
  }
}

/// values[channel of column i] for the columns of a panel.
inline void gather_columns(const Panel& panel, std::int64_t channels, const float* values, float* columns) {
  std::int64_t channel = panel.channel;
  for (int i = 0; i < panel.width; ++i) {
    columns[i] = values[channel];
    if (++channel == channels) channel = 0;
  }
}

}  // namespace
}  // namespace lockstep
