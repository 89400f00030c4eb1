// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Eigenvalues and eigenvectors of symmetric matrices in double. Host memory. Shampoo and whitening use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep {

class SymmetricEigen {
 public:
  /// A solver for matrices of at most `largest` rows. One thread at a time. solve() allocates, too.
  explicit SymmetricEigen(std::int64_t largest);
  ~SymmetricEigen();
  SymmetricEigen(SymmetricEigen&&) noexcept;
  SymmetricEigen& operator=(SymmetricEigen&&) noexcept;

  /// Room for an n x n matrix, row-major, whose upper triangle counts. Fill it before solve().
  double* matrix(std::int64_t n);
  /// Solves the last matrix(), which is used up. False if it does not converge (values that are not finite).
  /// The bits depend on the matrix alone.
  bool solve();
  /// n values, ascending.
  const double* values() const;
  /// n vectors of n values, one after the other, in the order of the values; of length 1.
  const double* vectors() const;

  std::size_t memory_bytes() const;

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace lockstep
