// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The preconditioner of Shampoo (Gupta, Koren and Singer 2018, arXiv:1802.09568), for blocks of matrices as
// in Anil et al. 2020, arXiv:2002.09018. A block G of the gradient, r x c, moves two statistics
//
//   L = d L + (1 - d) G G^T,   R = d R + (1 - d) G^T G        (both without 1 - d if d = 1: sums)
//
// and a direction M of the same shape becomes A M B, where A and B are inverse roots of L and R. Roots are
// computed in double on the host (optim/inverse_root.h), in some steps only; the rest is float32 on the
// device. A block is computed by one thread of the rank that owns it, and its state is nowhere else.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "optim/inverse_root.h"
#include "optim/update_context.h"

namespace lockstep {

class BlockPreconditioner {
 public:
  struct Block {
    std::int64_t rows = 0, columns = 0;
    std::int64_t first = 0;      ///< the block's first element in the flat range of the variables
    std::int64_t stride = 0;     ///< between its rows there: the units of the variable
    std::int64_t place = 0;      ///< of the block in results, a multiple of 16; there its rows are dense
    std::int64_t direction = 0;  ///< of its first element among the directions of the variables
  };
  enum State { kLeft, kRight, kLeftRoot, kRightRoot, kNumStates };

  /// All blocks. `root_every`: in how many steps there is one with roots, on average, for cost().
  BlockPreconditioner(const UpdateContext& context, std::vector<Block> blocks, double root_every);

  const std::vector<Block>& blocks() const { return blocks_; }
  /// Multiplications and additions of a step, in time those of the products.
  double cost(std::size_t block) const;
  /// Allocates the state of these blocks and sets it to its initial values: zeros, and as roots the identity.
  void own(std::span<const std::size_t> blocks);
  void reset();
  /// The same for a block; nothing if another rank owns it.
  void reset(std::size_t block);

  /// How a step is computed. The statistics are first multiplied by `kept`, and G G^T by `gain`.
  struct Step {
    float kept = 1, gain = 1;
    std::optional<InverseRoot::Power> roots;  ///< none: those of an earlier step stay
    bool preconditions = true;                ///< false: the result is the direction
    bool grafts = true;                       ///< the result gets the norm of the direction
    float mean_scale = 1;                     ///< of the result, if it does not
  };
  /// A step of a block that is owned. `gradients` and `means` (M) are flat like the variables. Returns how
  /// many of its roots could not be computed: they stay as they are, and statistics that are not finite begin
  /// anew. No allocation but Eigen's.
  int compute(const Lane& lane, std::size_t block, const Step& step, const float* gradients,
              const float* means, const float* directions, float* results);
  /// Copies the result of a block to its place among the directions.
  void place_result(const Lane& lane, std::size_t block, const float* results, float* directions) const;

  /// Elements of a state of a block.
  std::int64_t state_size(std::size_t block, State state) const;
  /// Copies the state of an owned block from or to host memory.
  void read_state(std::size_t block, State state, float* to) const;
  void write_state(std::size_t block, State state, const float* from);

  std::size_t memory_bytes() const;
  /// Bytes of the state of all blocks, owned or not.
  std::size_t state_bytes() const;

 private:
  /// The products and sums of squares for all blocks of one shape.
  struct Shape {
    std::int64_t rows = 0, columns = 0;
    std::unique_ptr<LinearPrimitive> left;   ///< rows x rows times rows x columns; G G^T
    std::unique_ptr<LinearPrimitive> right;  ///< rows x columns times columns x columns; G^T G
    Buffer squares;                          ///< ClipBlocks of rows x columns dense elements
    Buffer variable;                         ///< their ClipVariable
    std::int64_t num_squares = 0;
  };
  struct Workspace {
    Buffer gradient, mean, other, gram, scratch, packed;
    Buffer sums, norms, unused_factor, unused_totals;
    Buffer matrix, root;  ///< pinned; empty where the device's memory is the host's
    InverseRoot inverse_root{0};
  };
  float* state(std::size_t block, State state) const;
  void gather(const Lane& lane, const Block& block, const float* from, const Buffer& to) const;
  void add_statistics(const Lane& lane, std::size_t block, const Step& step, const Workspace& space) const;
  bool update_root(const Lane& lane, std::size_t block, State statistics, const InverseRoot::Power& power,
                   Workspace& space) const;
  void apply_roots(const Lane& lane, std::size_t block, const Workspace& space) const;
  void sum_squares(const Lane& lane, const Shape& shape, const float* values, const Workspace& space,
                   int which) const;

  const KernelTable& kernels_;
  Device& device_;
  std::vector<Block> blocks_;
  double root_every_;
  std::vector<Shape> shapes_;
  std::vector<std::size_t> shape_of_;   ///< by block
  std::vector<Workspace> workspaces_;   ///< by lane
  std::vector<std::int64_t> place_of_;  ///< of each block's state in states_; -1: another rank's
  Buffer states_;
};

}  // namespace lockstep
