// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Moves the singular values of matrices towards 1 by Newton-Schulz iterations in float32: Jordan et al. 2024,
// "Muon", with their coefficients. X is divided by its Frobenius norm; then, several times,
//
//   A = X X^T,   B = b A + c A A,   X = a X + B X       (for wide X; with X^T X and X B for tall X)
//
// The arithmetic depends on the shape of a matrix alone: one thread computes it.
#pragma once

#include <memory>
#include <vector>

#include "core/range.h"
#include "optim/update_context.h"

namespace lockstep {

class Orthogonalizer {
 public:
  struct Matrix {
    std::int64_t rows = 0, columns = 0;
    std::int64_t place = 0;  ///< of its first element, row-major, in the array; a multiple of 16
  };
  static constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  /// Smaller norms are not enlarged to 1, but divided by this: PyTorch's 1e-7, as a power of two.
  static constexpr float kSmallestNorm = 0x1p-23F;

  /// `iterations` >= 1. Allocates work space for each lane of the context.
  Orthogonalizer(const UpdateContext& context, std::vector<Matrix> matrices, int iterations);

  const std::vector<Matrix>& matrices() const { return matrices_; }
  /// Multiplications and additions of one matrix.
  double cost(std::size_t matrix) const;
  /// Replaces the matrix in `array`, which is on the device and aligned to 64 bytes. No allocation, no wait.
  void compute(const Lane& lane, std::size_t matrix, float* array) const;
  std::size_t memory_bytes() const;

 private:
  /// The products for all matrices of one shape.
  struct Shape {
    std::int64_t rows = 0, columns = 0;
    std::unique_ptr<LinearPrimitive> with_matrix;  ///< X X^T and B X, or X^T X and X B
    std::unique_ptr<LinearPrimitive> square;       ///< A A
    Buffer diagonal;                               ///< kA times the identity
    std::int64_t side() const { return rows < columns ? rows : columns; }
    bool wide() const { return rows <= columns; }
  };
  struct Workspace {
    Buffer other, gram, power, scratch, packed;
  };
  void normalize(const Lane& lane, std::size_t matrix, float* array) const;
  void iterate(const Lane& lane, const Shape& shape, const Workspace& space, const float* from,
               float* to) const;

  const KernelTable& kernels_;
  std::vector<Matrix> matrices_;
  int iterations_;
  std::vector<Shape> shapes_;
  std::vector<std::size_t> shape_of_;  ///< by matrix
  std::vector<Workspace> workspaces_;  ///< by lane
  // Of the norms (kernels/clip.h): the blocks and the matrices, a sum per block, and per matrix its sum of
  // squares and factor.
  Buffer blocks_, variables_, sums_, squares_, factors_, totals_;
  std::vector<Range> blocks_of_;  ///< by matrix
};

}  // namespace lockstep
