// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Inverse roots of symmetric matrices, by their eigenvalues in double. Host memory.
#pragma once

#include <cstdint>
#include <memory>

namespace lockstep {

class InverseRoot {
 public:
  /// A solver for matrices of at most `largest` rows. One thread at a time.
  explicit InverseRoot(std::int64_t largest);
  ~InverseRoot();
  InverseRoot(InverseRoot&&) noexcept;
  InverseRoot& operator=(InverseRoot&&) noexcept;

  struct Power {
    double scale = 1;     ///< of the matrix, before anything else
    double exponent = 0;  ///< > 0: the result has the eigenvalues (scale l + ridge)^-exponent
    double epsilon = 0;   ///< ridge = epsilon times the largest scaled eigenvalue
  };
  /// root = (scale matrix + ridge)^-exponent. Both are n x n, row-major; of `matrix` the upper triangle
  /// counts. Negative eigenvalues, which rounding makes, count as 0. Returns false, and leaves `root` as it
  /// is, if the matrix is zero or not finite, or if the result is not finite in float32. The bits depend on
  /// the arguments alone.
  bool compute(std::int64_t n, const float* matrix, const Power& power, float* root);
  std::size_t memory_bytes() const;

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace lockstep
