// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/inverse_root.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/symmetric_eigen.h"

namespace lockstep {

struct InverseRoot::Workspace {
  explicit Workspace(std::int64_t largest)
      : eigen(largest),
        scaled(static_cast<std::size_t>(largest * largest)),
        sums(static_cast<std::size_t>(largest * largest)) {}
  SymmetricEigen eigen;
  std::vector<double> scaled, sums;
};

InverseRoot::InverseRoot(std::int64_t largest) : workspace_(std::make_unique<Workspace>(largest)) {}

InverseRoot::~InverseRoot() = default;
InverseRoot::InverseRoot(InverseRoot&&) noexcept = default;
InverseRoot& InverseRoot::operator=(InverseRoot&&) noexcept = default;

std::size_t InverseRoot::memory_bytes() const {
  return workspace_->eigen.memory_bytes() + 2 * workspace_->scaled.size() * sizeof(double);
}

bool InverseRoot::compute(std::int64_t n, const float* matrix, const Power& power, float* root) {
  Workspace& space = *workspace_;
  const std::int64_t count = n * n;
  if (!std::all_of(matrix, matrix + count, [](float x) { return std::isfinite(x); })) return false;
  std::transform(matrix, matrix + count, space.eigen.matrix(n),
                 [&](float x) { return power.scale * static_cast<double>(x); });
  if (!space.eigen.solve()) return false;
  const double largest = space.eigen.values()[n - 1];
  if (!(largest > 0)) return false;

  // Column k of the eigenvectors times l_k^(-exponent / 2): the root is the product of the result with its
  // transpose, added column by column. Eigenvalues ascend, so the largest terms come first.
  const double ridge = power.epsilon * largest;
  std::fill_n(space.sums.begin(), count, 0.0);
  for (std::int64_t k = 0; k < n; ++k) {
    const double value = std::max(space.eigen.values()[k], 0.0) + ridge;
    const double factor = std::pow(value, -0.5 * power.exponent);
    double* const scaled = space.scaled.data();
    const double* const vector = space.eigen.vectors() + k * n;
    for (std::int64_t i = 0; i < n; ++i) scaled[i] = factor * vector[i];
    for (std::int64_t i = 0; i < n; ++i) {
      double* const row = space.sums.data() + i * n;
      for (std::int64_t j = i; j < n; ++j) row[j] += scaled[i] * scaled[j];
    }
  }
  // A diagonal element is at least as large as any other of its row or column.
  for (std::int64_t i = 0; i < n; ++i)
    if (!std::isfinite(static_cast<float>(space.sums[static_cast<std::size_t>(i * n + i)]))) return false;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i; j < n; ++j)
      root[i * n + j] = root[j * n + i] = static_cast<float>(space.sums[static_cast<std::size_t>(i * n + j)]);
  return true;
}

}  // namespace lockstep
