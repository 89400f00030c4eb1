// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reference loops in double for normalisation within a sample, and the shapes of the tests, on the CPU and on
// GPUs.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/group_norm.h"
#include "support/reference_kernels.h"

namespace lockstep {

inline std::vector<GroupNormShape> group_norm_shapes() {
  return {{1, 1, 1, 1},    {3, 1, 1, 17},  {70, 1, 1, 64}, {5, 1, 1, 1500}, {2, 1, 1, 3000}, {2, 5, 1, 3},
          {3, 6, 2, 4},    {2, 9, 17, 1},  {1, 1, 4, 16},  {3, 100, 4, 8},  {2, 300, 2, 5},  {4, 7, 3, 33},
          {130, 1, 1, 12}, {1, 40, 64, 1}, {2, 1, 3, 1},   {9, 1, 1, 132},  {9, 1, 1, 1024}, {3, 1, 1, 1028}};
}
/// Those of RMS norm, too.
inline std::vector<GroupNormShape> all_norm_shapes() {
  std::vector<GroupNormShape> shapes = group_norm_shapes();
  for (const auto& [rows, width] : {std::pair<int, int>{1, 1}, {3, 17}, {70, 64}, {2, 1500}, {130, 12}})
    shapes.push_back({.samples = rows, .width = width, .centred = false});
  return shapes;
}
inline std::string to_string(const GroupNormShape& s) {
  return std::to_string(s.samples) + "x" + std::to_string(s.positions) + "x" + std::to_string(s.groups) +
         "x" + std::to_string(s.width) + (s.centred ? "" : " not centred");
}

struct GroupNormReference {
  reference::Values y, dx, dgamma, dbeta, dgamma_terms, dbeta_terms;  ///< terms: sums of magnitudes
  double largest_dx = 0;  ///< largest sum of magnitudes of the terms of a dx
};
inline GroupNormReference group_norm_reference(const GroupNormShape& s, const reference::Values& x,
                                               const reference::Values& dy, const reference::Values& gamma,
                                               const reference::Values& beta, double epsilon) {
  const auto channels = static_cast<std::size_t>(s.channels()),
             positions = static_cast<std::size_t>(s.positions), width = static_cast<std::size_t>(s.width),
             groups = static_cast<std::size_t>(s.groups);
  GroupNormReference r;
  r.y.resize(x.size());
  r.dx.resize(x.size());
  for (auto* values : {&r.dgamma, &r.dbeta, &r.dgamma_terms, &r.dbeta_terms}) values->resize(channels);
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(s.samples); ++sample)
    for (std::size_t group = 0; group < groups; ++group) {
      std::vector<std::size_t> members;
      for (std::size_t p = 0; p < positions; ++p)
        for (std::size_t w = 0; w < width; ++w)
          members.push_back((sample * positions + p) * channels + group * width + w);
      const auto count = static_cast<double>(members.size());
      double mean = 0, variance = 0, mean_g = 0, mean_gx = 0;
      for (std::size_t at : members) mean += s.centred ? x[at] / count : 0;
      for (std::size_t at : members) variance += (x[at] - mean) * (x[at] - mean) / count;
      const double inverse = 1.0 / std::sqrt(variance + epsilon);
      for (std::size_t at : members) {
        const std::size_t c = at % channels;
        const double xhat = (x[at] - mean) * inverse;
        r.y[at] = xhat * gamma[c] + beta[c];
        r.dgamma[c] += dy[at] * xhat;
        r.dbeta[c] += dy[at];
        r.dgamma_terms[c] += std::abs(dy[at] * xhat);
        r.dbeta_terms[c] += std::abs(dy[at]);
        mean_g += s.centred ? dy[at] * gamma[c] / count : 0;
        mean_gx += dy[at] * gamma[c] * xhat / count;
      }
      for (std::size_t at : members) {
        const double xhat = (x[at] - mean) * inverse;
        r.dx[at] = (dy[at] * gamma[at % channels] - mean_g - xhat * mean_gx) * inverse;
        r.largest_dx = std::max(r.largest_dx, (1.0 + std::abs(xhat)) * inverse);
      }
    }
  return r;
}

struct L2Reference {
  reference::Values y, dx, terms;  ///< terms: magnitudes of the terms of dx
};
inline L2Reference l2_reference(std::int64_t rows, std::int64_t channels, const reference::Values& x,
                                const reference::Values& dy, double epsilon) {
  L2Reference r;
  const auto width = static_cast<std::size_t>(channels);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    double sum = 0, dot = 0, dot_terms = 0;
    for (std::size_t i = 0; i < width; ++i) sum += x[row * width + i] * x[row * width + i];
    const double factor = 1.0 / std::sqrt(std::max(sum, epsilon));
    for (std::size_t i = 0; i < width; ++i) {
      dot += x[row * width + i] * factor * dy[row * width + i];
      dot_terms += std::abs(x[row * width + i] * factor * dy[row * width + i]);
    }
    if (sum < epsilon) dot = dot_terms = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double y = x[row * width + i] * factor;
      r.y.push_back(y);
      r.dx.push_back((dy[row * width + i] - y * dot) * factor);
      r.terms.push_back((std::abs(dy[row * width + i]) + std::abs(y) * dot_terms) * factor);
    }
  }
  return r;
}

}  // namespace lockstep
