// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Slots of an optimizer whose parts lie on different ranks (`optimizer.shard`, docs/sharding.md), as whole
// tensors of a checkpoint. The chief never holds all of them: while it writes, each piece comes from the
// ranks that hold it; while it reads, each slot of one variable goes to the ranks that hold it. Slots of
// sparse tables are whole on each rank and not here. Host memory only.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/ownership.h"
#include "core/buffer.h"
#include "core/function_ref.h"
#include "io/checkpoint.h"
#include "model/variable_store.h"
#include "optim/optimizer.h"

namespace lockstep {

class ShardedSlots {
 public:
  /// All ranks, with the same arguments. References outlive it. `piece_elements`: the most elements of a
  /// piece, unless one row is longer.
  ShardedSlots(Communicator& communicator, const Optimizer& optimizer, const VariableStore& variables,
               const Ownership& ownership, std::int64_t piece_elements = std::int64_t{1} << 20);

  /// The slots by path, with CheckpointTensor::pieces that work in stream() on the chief.
  std::vector<CheckpointTensor> tensors();
  /// All ranks. Runs `write` on the chief, which may take the pieces of all tensors(), in the order of paths;
  /// the other ranks send theirs. What `write` throws is thrown on the chief when all ranks are through.
  void stream(FunctionRef<void()> write);
  /// All ranks. Calls `read(path, to)` on the chief for each tensor and distributes what it has read; if it
  /// returns false, the slot keeps its values. Its Error is thrown on all ranks.
  void restore(FunctionRef<bool(const std::string& path, const Tensor& to)> read);

 private:
  struct Slot {
    std::string path;
    std::size_t index;
    const Variable* variable;
  };
  struct Part {
    Range range;
    int rank;
  };
  using Pieces = FunctionRef<void(const Part& part, std::int64_t at)>;
  /// Calls then(part of one rank, its first element in the piece) for all parts of [range).
  void for_parts(Range range, Pieces then) const;
  /// The pieces of a slot: whole rows (the first dimension), so that each is a block of the tensor.
  void for_pieces(const Slot& slot, FunctionRef<void(Range)> then) const;
  float* address(const Slot& slot, std::int64_t element) const;
  void take(std::size_t number, const CheckpointTensor::Take& take);
  void send(const Slot& slot) const;

  Communicator& communicator_;
  const Optimizer& optimizer_;
  std::vector<Slot> slots_;  ///< by path
  std::vector<Part> parts_;  ///< of all ranks, ascending
  std::int64_t piece_elements_;
  std::size_t next_ = 0;  ///< in stream(): the slot that is sent next
  Buffer piece_;
};

}  // namespace lockstep
