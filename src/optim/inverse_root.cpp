// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The only file that uses Eigen (docs/decisions/030-eigen-in-one-file.md). It is compiled for the baseline
// instruction set. Eigen's functions are inline: under a namespace of Lockstep's own, the linker cannot
// choose those of a user's program, or of a plugin, which may be compiled for another processor.
#include "optim/inverse_root.h"

#define Eigen lockstep_eigen
#define EIGEN_DONT_VECTORIZE    // no sum depends on an address
#define EIGEN_DONT_PARALLELIZE  // the caller's thread alone
#include <Eigen/Eigenvalues>
#undef Eigen

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {

namespace {

namespace eigen = ::lockstep_eigen;
using Matrix = eigen::MatrixXd;

/// Eigen takes the block sizes of its products, and so the order of their sums, from the processor's caches.
void fix_block_sizes() {
  static const bool once = (eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20), true);
  (void)once;
}

}  // namespace

struct InverseRoot::Workspace {
  Matrix matrix;
  eigen::SelfAdjointEigenSolver<Matrix> solver;
  std::vector<double> scaled, sums;
};

InverseRoot::InverseRoot(std::int64_t largest) : workspace_(std::make_unique<Workspace>()) {
  fix_block_sizes();
  const auto n = static_cast<eigen::Index>(largest);
  workspace_->matrix.resize(n, n);
  workspace_->solver = eigen::SelfAdjointEigenSolver<Matrix>(n);
  workspace_->scaled.resize(static_cast<std::size_t>(n * n));
  workspace_->sums.resize(static_cast<std::size_t>(n * n));
}

InverseRoot::~InverseRoot() = default;
InverseRoot::InverseRoot(InverseRoot&&) noexcept = default;
InverseRoot& InverseRoot::operator=(InverseRoot&&) noexcept = default;

std::size_t InverseRoot::memory_bytes() const {
  return 4 * workspace_->scaled.size() * sizeof(double);  // the matrix, eigenvectors, two of its own
}

bool InverseRoot::compute(std::int64_t n, const float* matrix, const Power& power, float* root) {
  Workspace& space = *workspace_;
  const std::int64_t count = n * n;
  if (!std::all_of(matrix, matrix + count, [](float x) { return std::isfinite(x); })) return false;
  space.matrix.resize(n, n);
  // Eigen reads the lower triangle of a matrix that is stored by columns: the upper one by rows.
  std::transform(matrix, matrix + count, space.matrix.data(),
                 [&](float x) { return power.scale * static_cast<double>(x); });
  if (space.solver.compute(space.matrix).info() != eigen::Success) return false;
  const double largest = space.solver.eigenvalues()[n - 1];
  if (!(largest > 0)) return false;

  // Column k of the eigenvectors times l_k^(-exponent / 2): the root is the product of the result with its
  // transpose, added column by column. Eigenvalues ascend, so the largest terms come first.
  const double ridge = power.epsilon * largest;
  std::fill_n(space.sums.begin(), count, 0.0);
  for (std::int64_t k = 0; k < n; ++k) {
    const double value = std::max(space.solver.eigenvalues()[k], 0.0) + ridge;
    const double factor = std::pow(value, -0.5 * power.exponent);
    double* const scaled = space.scaled.data();
    const double* const vector = space.solver.eigenvectors().data() + k * n;
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
