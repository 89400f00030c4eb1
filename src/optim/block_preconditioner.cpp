// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/block_preconditioner.h"

#include <algorithm>
#include <cmath>

#include "core/sizes.h"
#include "kernels/rules.h"

namespace lockstep {

namespace {

template <typename T>
Buffer on_device(Device& device, const std::vector<T>& values) {
  Buffer buffer(device, values.size() * sizeof(T));
  if (!values.empty()) device.copy_from_host(buffer.data(), values.data(), buffer.size_bytes());
  return buffer;
}

float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

std::size_t bytes_of(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

/// The rows of a block, dense on the other side.
StridedCopy rows_of(std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  StridedCopy copy;
  copy.add_axis(rows, stride, columns);
  copy.add_axis(columns, 1, 1);
  return copy;
}

}  // namespace

BlockPreconditioner::BlockPreconditioner(const UpdateContext& context, std::vector<Block> blocks,
                                         double root_every)
    : kernels_(context.kernels),
      device_(context.device),
      blocks_(std::move(blocks)),
      root_every_(root_every),
      place_of_(blocks_.size(), -1) {
  const int lanes = context.pool.size();
  std::size_t scratch_bytes = kernels_.scratch_bytes, packed_bytes = 0;
  std::int64_t side = 0, elements = 0, num_squares = 0;
  for (const Block& block : blocks_) {
    auto shape = std::ranges::find_if(shapes_, [&](const Shape& known) {
      return known.rows == block.rows && known.columns == block.columns;
    });
    shape_of_.push_back(static_cast<std::size_t>(shape - shapes_.begin()));
    if (shape != shapes_.end()) continue;
    Shape& added = shapes_.emplace_back();
    added.rows = block.rows, added.columns = block.columns;
    added.left = kernels_.make.dense({.n = block.rows, .in = block.rows, .out = block.columns}, lanes);
    added.right = kernels_.make.dense({.n = block.rows, .in = block.columns, .out = block.columns}, lanes);
    const std::int64_t count = block.rows * block.columns;
    std::vector<ClipBlock> squares;
    for (std::int64_t first = 0; first < count; first += kClipBlock)
      squares.push_back({first, static_cast<std::int32_t>(std::min(kClipBlock, count - first)), 0});
    added.num_squares = static_cast<std::int64_t>(squares.size());
    added.squares = on_device(device_, squares);
    added.variable = on_device(device_, std::vector<ClipVariable>{{0, added.num_squares, 0}});
    for (const LinearPrimitive* product : {added.left.get(), added.right.get()}) {
      scratch_bytes = std::max(scratch_bytes, product->scratch_bytes());
      packed_bytes = std::max(packed_bytes, product->packed_bytes());
    }
    side = std::max({side, block.rows, block.columns});
    elements = std::max(elements, count);
    num_squares = std::max(num_squares, added.num_squares);
  }
  for (int lane = 0; lane < lanes && !blocks_.empty(); ++lane) {
    const auto numbers = [&](std::int64_t count) {
      return Buffer(device_, static_cast<std::size_t>(count) * sizeof(double));
    };
    const auto pinned = [&](std::int64_t count) {
      return device_.is_host() ? Buffer() : Buffer::pinned(device_, bytes_of(count));
    };
    workspaces_.push_back({.gradient = Buffer(device_, bytes_of(elements)),
                           .mean = Buffer(device_, bytes_of(elements)),
                           .other = Buffer(device_, bytes_of(elements)),
                           .gram = Buffer(device_, bytes_of(side * side)),
                           .scratch = Buffer(device_, scratch_bytes),
                           .packed = Buffer(device_, packed_bytes),
                           .sums = numbers(num_squares),
                           .norms = numbers(2),
                           .unused_factor = numbers(1),
                           .unused_totals = Buffer(device_, sizeof(ClipTotals)),
                           .matrix = pinned(side * side),
                           .root = pinned(side * side),
                           .inverse_root = InverseRoot(side)});
  }
}

double BlockPreconditioner::cost(std::size_t block) const {
  const Shape& shape = shapes_[shape_of_[block]];
  const auto r = static_cast<double>(shape.rows), c = static_cast<double>(shape.columns);
  // A root takes about ten n^3 operations (Golub and Van Loan 2013, section 8.3), one at a time in double;
  // eight of a product take that time.
  return 2 * (shape.left->flops() + shape.right->flops()) + 80 * (r * r * r + c * c * c) / root_every_;
}

std::int64_t BlockPreconditioner::state_size(std::size_t block, State state) const {
  const bool left = state == kLeft || state == kLeftRoot;
  const std::int64_t side = left ? blocks_[block].rows : blocks_[block].columns;
  return side * side;
}

float* BlockPreconditioner::state(std::size_t block, State state) const {
  LOCKSTEP_DCHECK(place_of_[block] >= 0);
  std::int64_t place = place_of_[block];
  for (int before = 0; before < state; ++before)
    place += VariableStore::padded(state_size(block, static_cast<State>(before)));
  return floats(states_) + place;
}

void BlockPreconditioner::own(std::span<const std::size_t> blocks) {
  std::int64_t place = 0;
  for (const std::size_t block : blocks) {
    place_of_[block] = place;
    for (int state = 0; state < kNumStates; ++state)
      place += VariableStore::padded(state_size(block, static_cast<State>(state)));
  }
  allocate_for("statistics and roots of the optimizer", [&] { states_ = Buffer(device_, bytes_of(place)); });
  reset();
}

void BlockPreconditioner::reset() {
  for (std::size_t block = 0; block < blocks_.size(); ++block) reset(block);
}

void BlockPreconditioner::reset(std::size_t block) {
  if (place_of_[block] < 0) return;
  std::vector<float> values;
  for (const State s : {kLeft, kRight, kLeftRoot, kRightRoot}) {
    const std::int64_t count = state_size(block, s);
    values.assign(static_cast<std::size_t>(count), 0);
    const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(count))));
    for (std::int64_t i = 0; (s == kLeftRoot || s == kRightRoot) && i < side; ++i)
      values[static_cast<std::size_t>(i * side + i)] = 1;
    write_state(block, s, values.data());
  }
}

void BlockPreconditioner::read_state(std::size_t block, State s, float* to) const {
  device_.copy_to_host(to, state(block, s), bytes_of(state_size(block, s)));
}

void BlockPreconditioner::write_state(std::size_t block, State s, const float* from) {
  device_.copy_from_host(state(block, s), from, bytes_of(state_size(block, s)));
}

std::size_t BlockPreconditioner::state_bytes() const {
  std::int64_t elements = 0;
  for (std::size_t block = 0; block < blocks_.size(); ++block)
    for (int state = 0; state < kNumStates; ++state)
      elements += VariableStore::padded(state_size(block, static_cast<State>(state)));
  return bytes_of(elements);
}

std::size_t BlockPreconditioner::memory_bytes() const {
  std::size_t bytes = states_.size_bytes();
  for (const Workspace& space : workspaces_)
    bytes += space.gradient.size_bytes() + space.mean.size_bytes() + space.other.size_bytes() +
             space.gram.size_bytes() + space.scratch.size_bytes() + space.packed.size_bytes() +
             space.sums.size_bytes() + space.matrix.size_bytes() + space.root.size_bytes() +
             space.inverse_root.memory_bytes();
  return bytes;
}

void BlockPreconditioner::gather(const Lane& lane, const Block& block, const float* from,
                                 const Buffer& to) const {
  const StridedCopy copy = rows_of(block.rows, block.columns, block.stride);
  kernels_.layout.copy(lane, copy, copy.extents[0], from, floats(to));
}

void BlockPreconditioner::place_result(const Lane& lane, std::size_t block, const float* results,
                                       float* directions) const {
  const Block& from = blocks_[block];
  const StridedCopy copy = rows_of(from.rows, from.columns, from.stride).reversed();
  kernels_.layout.copy(lane, copy, copy.extents[0], results + from.place, directions + from.direction);
}

void BlockPreconditioner::add_statistics(const Lane& lane, std::size_t block, const Step& step,
                                         const Workspace& space) const {
  const Shape& shape = shapes_[shape_of_[block]];
  const float* const g = floats(space.gradient);
  float* const gram = floats(space.gram);
  const auto add = [&](State into) {
    const std::int64_t count = state_size(block, into);
    const ElementwiseKernels& kernels = kernels_.elementwise;
    float* const statistics = state(block, into);
    if (step.kept != 1) kernels.scale(lane, count, step.kept, statistics, statistics);
    if (step.gain != 1) kernels.scale(lane, count, step.gain, gram, gram);
    kernels.accumulate(lane, count, statistics, gram);
  };
  if (shape.left->packed_bytes() > 0) shape.left->pack(lane, g, space.packed.data());
  shape.left->backward_data(lane, g, g, space.packed.data(), gram);
  add(kLeft);
  shape.right->backward_weights(lane, g, g, gram);
  add(kRight);
}

/// False: the old root stays.
bool BlockPreconditioner::update_root(const Lane& lane, std::size_t block, State statistics,
                                      const InverseRoot::Power& power, Workspace& space) const {
  float* const from = state(block, statistics);
  float* const to = state(block, statistics == kLeft ? kLeftRoot : kRightRoot);
  const std::int64_t count = state_size(block, statistics);
  const std::int64_t side = statistics == kLeft ? blocks_[block].rows : blocks_[block].columns;
  const bool on_host = device_.is_host();
  float *const matrix = on_host ? from : floats(space.matrix), *const root =
                                                                   on_host ? to : floats(space.root);
  if (!on_host) {
    device_.download(lane.stream, matrix, from, bytes_of(count));
    device_.synchronize(lane.stream);
  }
  const bool computed = space.inverse_root.compute(side, matrix, power, root);
  if (computed && !on_host) {
    device_.upload(lane.stream, to, root, bytes_of(count));
    device_.synchronize(lane.stream);  // the next root uses the same pinned memory
  }
  if (computed) return true;
  // Zeros give no root and need none: the direction is zero where the gradient has always been.
  if (std::all_of(matrix, matrix + count, [](float x) { return x == 0; })) return true;
  if (!std::all_of(matrix, matrix + count, [](float x) { return std::isfinite(x); }))
    device_.zero(lane.stream, from, bytes_of(count));
  return false;
}

/// space.other = A M B, where M is space.mean.
void BlockPreconditioner::apply_roots(const Lane& lane, std::size_t block, const Workspace& space) const {
  const Shape& shape = shapes_[shape_of_[block]];
  void* const packed = space.packed.data();
  const auto product = [&](const LinearPrimitive& primitive, const float* x, const float* weights, float* y) {
    if (primitive.packed_bytes() > 0) primitive.pack(lane, weights, packed);
    primitive.forward(lane, x, weights, packed, nullptr, y);
  };
  product(*shape.left, state(block, kLeftRoot), floats(space.mean), floats(space.gradient));
  product(*shape.right, floats(space.gradient), state(block, kRightRoot), floats(space.other));
}

void BlockPreconditioner::sum_squares(const Lane& lane, const Shape& shape, const float* values,
                                      const Workspace& space, int which) const {
  kernels_.clip.square_blocks(lane, shape.num_squares, shape.squares.as<ClipBlock>().data(), values,
                              space.sums.as<double>().data());
  kernels_.clip.factors(lane, 1, shape.variable.as<ClipVariable>().data(), space.sums.as<double>().data(),
                        ClipNorms{}, space.norms.as<double>().data() + which,
                        space.unused_factor.as<double>().data(), space.unused_totals.as<ClipTotals>().data());
}

int BlockPreconditioner::compute(const Lane& lane, std::size_t block, const Step& step,
                                 const float* gradients, const float* means, const float* directions,
                                 float* results) {
  const Block& own = blocks_[block];
  const Shape& shape = shapes_[shape_of_[block]];
  Workspace& space = workspaces_[static_cast<std::size_t>(lane.index)];
  Lane with_scratch = lane;
  with_scratch.scratch = space.scratch.data();
  with_scratch.scratch_bytes = space.scratch.size_bytes();
  const std::int64_t count = own.rows * own.columns;
  float* const result = results + own.place;

  gather(with_scratch, own, gradients + own.first, space.gradient);
  add_statistics(with_scratch, block, step, space);
  int failed = 0;
  if (step.roots)
    for (const State statistics : {kLeft, kRight})
      failed += update_root(with_scratch, block, statistics, *step.roots, space) ? 0 : 1;

  gather(with_scratch, own, directions + own.direction, space.other);
  if (!step.preconditions) {
    kernels_.elementwise.scale(with_scratch, count, 1, floats(space.other), result);
    return failed;
  }
  if (step.grafts) sum_squares(with_scratch, shape, floats(space.other), space, 0);
  gather(with_scratch, own, means + own.first, space.mean);
  apply_roots(with_scratch, block, space);
  if (!step.grafts) {
    kernels_.elementwise.scale(with_scratch, count, step.mean_scale, floats(space.other), result);
    return failed;
  }
  sum_squares(with_scratch, shape, floats(space.other), space, 1);
  const double* const norms = space.norms.as<double>().data();
  kernels_.update.apply(with_scratch, rule_step(GraftedNorm{norms, norms + 1}), count, result,
                        floats(space.other), {});
  return failed;
}

}  // namespace lockstep
