// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/principal_plane.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/symmetric_eigen.h"

namespace lockstep {

namespace {

constexpr int kSide = 480, kMargin = 16, kDot = 2;  // pixels; a dot reaches so far from its centre
constexpr std::array<double, 3> kFirst = {8, 48, 107}, kLast = {158, 202, 225};

std::vector<double> means_of(std::span<const float> values, std::size_t columns) {
  std::vector<double> means(columns);
  for (std::size_t i = 0; i < values.size(); ++i) means[i % columns] += static_cast<double>(values[i]);
  for (double& mean : means) mean /= static_cast<double>(values.size() / columns);
  return means;
}

/// The upper triangle; returns the sum of the variances.
double fill_covariance(std::span<const float> values, std::span<const double> means, double* to) {
  const std::size_t columns = means.size();
  std::fill_n(to, columns * columns, 0.0);
  std::vector<double> row(columns);
  for (std::size_t first = 0; first < values.size(); first += columns) {
    for (std::size_t c = 0; c < columns; ++c) row[c] = static_cast<double>(values[first + c]) - means[c];
    for (std::size_t i = 0; i < columns; ++i)
      for (std::size_t j = i; j < columns; ++j) to[i * columns + j] += row[i] * row[j];
  }
  double sum = 0;
  for (std::size_t i = 0; i < columns; ++i) sum += to[i * columns + i];
  return sum;
}

std::vector<double> along(std::span<const float> values, std::span<const double> means,
                          const double* vector) {
  const std::size_t columns = means.size();
  const double* const largest = std::max_element(
      vector, vector + columns, [](double a, double b) { return std::abs(a) < std::abs(b); });
  const double sign = *largest < 0 ? -1 : 1;
  std::vector<double> places;
  for (std::size_t first = 0; first < values.size(); first += columns) {
    double sum = 0;
    for (std::size_t c = 0; c < columns; ++c)
      sum += (static_cast<double>(values[first + c]) - means[c]) * vector[c];
    places.push_back(sign * sum);
  }
  return places;
}

}  // namespace

PrincipalPlane principal_plane(std::span<const float> values, std::int64_t columns) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(columns, 1));
  if (columns < 2 || values.size() < 2 * width) return {};
  const std::vector<double> means = means_of(values, width);
  SymmetricEigen eigen(columns);
  const double all = fill_covariance(values, means, eigen.matrix(columns));
  if (!std::isfinite(all) || !(all > 0) || !eigen.solve()) return {};
  const double* const last = eigen.vectors() + (width - 1) * width;
  return {.x = along(values, means, last),
          .y = along(values, means, last - width),
          .x_share = eigen.values()[width - 1] / all,
          .y_share = eigen.values()[width - 2] / all};
}

Picture picture_of(const PrincipalPlane& plane) {
  Picture picture(kSide, kSide, 3, 255);
  double most = 0;
  for (const std::vector<double>* const axis : {&plane.x, &plane.y})
    for (const double place : *axis) most = std::max(most, std::abs(place));
  if (!(most > 0)) return picture;
  const auto pixel = [&](double place) {
    return kSide / 2 + static_cast<int>(std::lround(place / most * (kSide / 2 - kMargin)));
  };
  // The first rows last, so that nothing covers them.
  for (std::size_t row = plane.x.size(); row-- > 0;) {
    const double share = static_cast<double>(row) / static_cast<double>(plane.x.size());
    const int column = pixel(plane.x[row]), line = pixel(-plane.y[row]);
    for (int dy = -kDot; dy <= kDot; ++dy)
      for (int dx = -kDot; dx <= kDot; ++dx) {
        if (dx * dx + dy * dy > kDot * kDot + 1) continue;
        for (std::size_t c = 0; c < 3; ++c)
          picture.at(column + dx, line + dy)[c] =
              static_cast<std::uint8_t>(std::lround(kFirst[c] + share * (kLast[c] - kFirst[c])));
      }
  }
  return picture;
}

}  // namespace lockstep
