// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of an update that needs whole matrices, such as the orthogonalization of Muon. Each matrix is
// computed by one thread of one rank, and all ranks receive the result, so the cost per rank falls with the
// number of ranks and the bits do not depend on it. train/matrix_sharing.h runs it between the sum of the
// gradients and Optimizer::update().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/data.h"
#include "core/range.h"
#include "kernels/kernel_table.h"
#include "kernels/lane.h"
#include "model/variable_store.h"

namespace lockstep {

class MatrixWork {
 public:
  struct Matrix {
    Range place;      ///< its elements in directions(), from a multiple of 16 on
    double cost = 0;  ///< multiplications and additions, to share the work evenly
  };

  virtual ~MatrixWork() = default;
  /// The matrices in the order of the variables; the same on all ranks.
  virtual const std::vector<Matrix>& matrices() const = 0;
  /// What compute() reads and writes, and the ranks exchange; on the device.
  virtual float* directions() const = 0;
  /// Called once, before the first step, with those that this rank computes.
  virtual void own(std::span<const std::size_t> /*matrices*/) {}
  /// Computes a matrix in place. Threads may compute different matrices at the same time, each with its lane.
  virtual void compute(const Lane& lane, std::size_t matrix) = 0;
  /// Finishes every matrix on each rank, when the results are exchanged.
  virtual void finish(const Lane& /*lane*/, std::size_t /*matrix*/) {}
  /// Bytes in use now. What only the owner of a matrix has counts after own().
  virtual std::size_t memory_bytes() const = 0;

  /// State of a variable's matrices that is not in a slot and that only their owners have. A checkpoint has
  /// it as slots/<slot>/<variable>: a row per matrix, filled with zeros after the numbers that it has.
  struct StateTensor {
    std::string_view slot;
    const Variable* variable;
    Range matrices;  ///< of the variable
    std::int64_t width = 0;
  };
  /// The state tensors, the same on all ranks.
  virtual const std::vector<StateTensor>& state() const {
    static const std::vector<StateTensor> none;
    return none;
  }
  /// The row of a matrix that this rank owns, in host memory; at most StateTensor::width numbers.
  virtual void read_state(std::size_t /*tensor*/, std::size_t /*matrix*/, float* /*to*/) const {}
  virtual void write_state(std::size_t /*tensor*/, std::size_t /*matrix*/, const float* /*from*/) {}
  /// Sets the state to its initial values.
  virtual void reset() {}
  /// Bytes of the state of all matrices.
  virtual std::size_t state_bytes() const { return 0; }
};

}  // namespace lockstep
