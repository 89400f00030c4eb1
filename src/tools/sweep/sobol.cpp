// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/sobol.h"

#include <array>

#include "core/error.h"

namespace lockstep {

namespace {

/// A primitive polynomial: its degree, its inner coefficients, the initial direction numbers.
struct Polynomial {
  std::uint32_t degree, coefficients;
  std::array<std::uint32_t, 7> initial;
};

// Of dimensions 2 to 21; dimension 1 is van der Corput's sequence.
constexpr Polynomial kPolynomials[] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
};
static_assert(std::size(kPolynomials) + 1 == kSobolDimensions);

using Directions = std::array<std::uint32_t, 32>;

Directions directions_of(std::size_t dimension) {
  Directions v{};
  if (dimension == 0) {
    for (std::uint32_t i = 0; i < 32; ++i) v[i] = 1U << (31 - i);
    return v;
  }
  const Polynomial& p = kPolynomials[dimension - 1];
  for (std::uint32_t i = 0; i < 32; ++i) {
    if (i < p.degree) {
      v[i] = p.initial[i] << (31 - i);
      continue;
    }
    v[i] = v[i - p.degree] ^ (v[i - p.degree] >> p.degree);
    for (std::uint32_t k = 1; k < p.degree; ++k)
      if (((p.coefficients >> (p.degree - 1 - k)) & 1U) != 0) v[i] ^= v[i - k];
  }
  return v;
}

}  // namespace

std::uint32_t sobol_word(std::uint32_t index, std::size_t dimension) {
  LOCKSTEP_CHECK(dimension < kSobolDimensions, "{}", dimension);
  const Directions v = directions_of(dimension);
  std::uint32_t word = 0;
  for (std::size_t bit = 0; index != 0; ++bit, index >>= 1U)
    if ((index & 1U) != 0) word ^= v[bit];
  return word;
}

}  // namespace lockstep
