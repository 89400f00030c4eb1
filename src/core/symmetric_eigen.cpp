// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The only file that uses Eigen (docs/decisions/004-no-eigen.md): eigenvectors are not element-wise
// arithmetic, and a solver of our own would be a poor copy of a tested one. Shampoo, whitening and pictures
// of embeddings call it. Eigen's functions are inline: under a namespace of Lockstep's own, the linker cannot
// choose those of a user's program, or of a plugin, which may be compiled for another processor. A unit test
// looks for symbols of Eigen in the object file.
//
// The bits depend on the matrix alone. There are no vectors, which cost nothing (128 rows: 3.3 ms with, 3.6
// ms without; 256 rows: 26.3 and 24.9 ms), and no threads. Eigen takes the block sizes of its products, and
// so the order of sums, from the processor's caches: they are set to constants. The file is compiled once,
// for the baseline instruction set: an object per level would be more to keep apart, for roots that are
// computed every ten steps. Eigen's solver allocates, so steps with roots allocate.
#include "core/symmetric_eigen.h"

#define Eigen lockstep_eigen
#define EIGEN_DONT_VECTORIZE    // no sum depends on an address
#define EIGEN_DONT_PARALLELIZE  // the caller's thread alone
#include <Eigen/Eigenvalues>
#undef Eigen

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

struct SymmetricEigen::Workspace {
  std::size_t elements;
  Matrix matrix;
  eigen::SelfAdjointEigenSolver<Matrix> solver;
};

SymmetricEigen::SymmetricEigen(std::int64_t largest) : workspace_(std::make_unique<Workspace>()) {
  fix_block_sizes();
  const auto n = static_cast<eigen::Index>(largest);
  workspace_->elements = static_cast<std::size_t>(n * n);
  workspace_->matrix.resize(n, n);
  workspace_->solver = eigen::SelfAdjointEigenSolver<Matrix>(n);
}

SymmetricEigen::~SymmetricEigen() = default;
SymmetricEigen::SymmetricEigen(SymmetricEigen&&) noexcept = default;
SymmetricEigen& SymmetricEigen::operator=(SymmetricEigen&&) noexcept = default;

// Eigen reads the lower triangle of a matrix that is stored by columns: the upper one by rows.
double* SymmetricEigen::matrix(std::int64_t n) {
  workspace_->matrix.resize(n, n);
  return workspace_->matrix.data();
}

bool SymmetricEigen::solve() {
  return workspace_->solver.compute(workspace_->matrix).info() == eigen::Success;
}

const double* SymmetricEigen::values() const { return workspace_->solver.eigenvalues().data(); }
const double* SymmetricEigen::vectors() const { return workspace_->solver.eigenvectors().data(); }

std::size_t SymmetricEigen::memory_bytes() const { return 2 * workspace_->elements * sizeof(double); }

}  // namespace lockstep
