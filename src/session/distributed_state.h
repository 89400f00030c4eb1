// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// State whose parts lie on different ranks, as whole tensors of a checkpoint: the slots of an optimizer with
// `optimizer.shard` (docs/sharding.md), what only the owners of matrices have (optim/matrix_work.h), and the
// residuals of the nodes of a sum (comm/error_feedback.h). The
// chief never holds all of it: while it writes, each piece comes from the ranks that hold it; while it reads,
// each tensor goes to the ranks that hold its parts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "core/shape.h"
#include "io/checkpoint.h"

namespace lockstep {

class Communicator;
class GradientReducer;
class MatrixSharing;
class Optimizer;
class Ownership;
class VariableStore;

/// A float32 tensor whose parts lie on different ranks. The same on all ranks, but for what the functions do.
struct DistributedTensor {
  struct Part {
    Range elements;
    int rank;
  };
  std::string path;
  Shape shape;
  std::vector<Part> parts;  ///< of all ranks, ascending; together all elements
  /// Copies elements of one part that this rank holds to and from host memory.
  std::function<void(Range elements, float* to)> read;
  std::function<void(Range elements, const float* from)> write;
};

/// The slots of dense variables where each rank holds those of its part, in host memory. Slots of sparse
/// tables are whole on each rank and not here. References outlive the result.
std::vector<DistributedTensor> distributed_slots(const Optimizer& optimizer, const VariableStore& variables,
                                                 const Ownership& ownership);
/// The residuals of a compressed sum (comm/error_feedback.h) of each dense variable, a row for each node of
/// the tree; none without them. References outlive the result.
std::vector<DistributedTensor> distributed_residuals(const GradientReducer& reducer,
                                                     const VariableStore& variables);
/// The prefix of their paths.
inline constexpr std::string_view kResiduals = "error_feedback/";
/// MatrixWork::state(). References outlive the result.
std::vector<DistributedTensor> distributed_matrices(MatrixSharing& matrices);

class DistributedState {
 public:
  /// All ranks, with the same arguments. References outlive it. `piece_elements`: the most elements of a
  /// piece, unless one row is longer.
  DistributedState(Communicator& communicator, std::vector<DistributedTensor> tensors,
                   std::int64_t piece_elements = std::int64_t{1} << 20);

  /// The state by path, with CheckpointTensor::pieces that work in stream() on the chief.
  std::vector<CheckpointTensor> tensors();
  /// All ranks. Runs `write` on the chief, which may take the pieces of all tensors(), in the order of paths;
  /// the other ranks send theirs. What `write` throws is thrown on the chief when all ranks are through.
  void stream(FunctionRef<void()> write);
  /// All ranks. Calls `read(path, to)` on the chief for each tensor and distributes what it has read; if it
  /// returns false, the tensor keeps its values. Its Error is thrown on all ranks.
  void restore(FunctionRef<bool(const std::string& path, const Tensor& to)> read);

 private:
  using Part = DistributedTensor::Part;
  /// Calls then(part of one rank, its first element in the piece) for all parts of a piece.
  static void for_parts(const DistributedTensor& tensor, Range piece,
                        FunctionRef<void(const Part& part, std::int64_t at)> then);
  /// Whole rows (the first dimension), so that each piece is a block of the tensor.
  void for_pieces(const DistributedTensor& tensor, FunctionRef<void(Range)> then) const;
  void take(std::size_t number, const CheckpointTensor::Take& take);
  void send(const DistributedTensor& tensor);
  float* piece(std::size_t bytes);

  Communicator& communicator_;
  std::vector<DistributedTensor> state_;  ///< by path
  std::int64_t piece_elements_;
  std::size_t next_ = 0;  ///< in stream(): the tensor that is sent next
  Buffer piece_;
};

}  // namespace lockstep
