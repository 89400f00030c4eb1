// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/orthogonalizer.h"

#include <algorithm>

#include "core/device_copy.h"
#include "core/range.h"

namespace lockstep {

namespace {

float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

}  // namespace

Orthogonalizer::Orthogonalizer(const UpdateContext& context, std::vector<Matrix> matrices, int iterations)
    : kernels_(context.kernels), matrices_(std::move(matrices)), iterations_(iterations) {
  Device& device = context.device;
  const int lanes = context.pool.size();
  std::vector<ClipBlock> blocks;
  std::vector<ClipVariable> variables;
  std::size_t matrix_bytes = 0, side_bytes = 0, scratch_bytes = 0, packed_bytes = 0;
  for (const Matrix& matrix : matrices_) {
    const auto number = static_cast<std::int32_t>(variables.size());
    const auto first_block = static_cast<std::int64_t>(blocks.size());
    const std::int64_t count = matrix.rows * matrix.columns;
    for (std::int64_t first = 0; first < count; first += kClipBlock)
      blocks.push_back(
          {matrix.place + first, static_cast<std::int32_t>(std::min(kClipBlock, count - first)), number});
    blocks_of_.push_back({first_block, static_cast<std::int64_t>(blocks.size())});
    variables.push_back({first_block, blocks_of_.back().size(), static_cast<double>(kSmallestNorm)});

    auto shape = std::ranges::find_if(shapes_, [&](const Shape& known) {
      return known.rows == matrix.rows && known.columns == matrix.columns;
    });
    shape_of_.push_back(static_cast<std::size_t>(shape - shapes_.begin()));
    if (shape != shapes_.end()) continue;
    Shape& added = shapes_.emplace_back();
    added.rows = matrix.rows, added.columns = matrix.columns;
    const std::int64_t side = added.side();
    added.with_matrix = kernels_.make.dense({.n = matrix.rows, .in = side, .out = matrix.columns}, lanes);
    added.square = kernels_.make.dense({.n = side, .in = side, .out = side, .training = false}, lanes);
    std::vector<float> diagonal(static_cast<std::size_t>(side * side));
    for (std::int64_t i = 0; i < side; ++i)
      diagonal[static_cast<std::size_t>(i * side + i)] = static_cast<float>(kA);
    added.diagonal = on_device(device, diagonal);
    matrix_bytes = std::max(matrix_bytes, static_cast<std::size_t>(count) * sizeof(float));
    side_bytes = std::max(side_bytes, diagonal.size() * sizeof(float));
    for (const LinearPrimitive* product : {added.with_matrix.get(), added.square.get()}) {
      scratch_bytes = std::max(scratch_bytes, product->scratch_bytes());
      packed_bytes = std::max(packed_bytes, product->packed_bytes());
    }
  }
  for (int lane = 0; lane < lanes; ++lane)
    workspaces_.push_back({Buffer(device, matrix_bytes), Buffer(device, side_bytes),
                           Buffer(device, side_bytes), Buffer(device, scratch_bytes),
                           Buffer(device, packed_bytes)});
  blocks_ = on_device(device, blocks);
  variables_ = on_device(device, variables);
  sums_ = Buffer(device, blocks.size() * sizeof(double));
  squares_ = Buffer(device, variables.size() * sizeof(double));
  factors_ = Buffer(device, variables.size() * sizeof(double));
  totals_ = Buffer(device, variables.size() * sizeof(ClipTotals));
}

double Orthogonalizer::cost(std::size_t matrix) const {
  const Shape& shape = shapes_[shape_of_[matrix]];
  return iterations_ * (2 * shape.with_matrix->flops() + shape.square->flops());
}

std::size_t Orthogonalizer::memory_bytes() const {
  std::size_t bytes = blocks_.size_bytes() + sums_.size_bytes();
  for (const Shape& shape : shapes_) bytes += shape.diagonal.size_bytes();
  for (const Workspace& space : workspaces_)
    bytes += space.other.size_bytes() + space.gram.size_bytes() + space.power.size_bytes() +
             space.scratch.size_bytes() + space.packed.size_bytes();
  return bytes;
}

/// Multiplies by kSmallestNorm / max(norm, kSmallestNorm), rounded once; compute() takes the power of two
/// off.
void Orthogonalizer::normalize(const Lane& lane, std::size_t matrix, float* array) const {
  const Range own = blocks_of_[matrix];
  const ClipBlock* const blocks = blocks_.as<ClipBlock>().data() + own.first;
  double *const sums = sums_.as<double>().data(), *const factors = factors_.as<double>().data();
  kernels_.clip.square_blocks(lane, own.size(), blocks, array, sums + own.first);
  kernels_.clip.factors(lane, 1, variables_.as<ClipVariable>().data() + matrix, sums,
                        {.which = ClipNorms::Which::each}, squares_.as<double>().data() + matrix,
                        factors + matrix, totals_.as<ClipTotals>().data() + matrix);
  kernels_.clip.clip_blocks(lane, own.size(), blocks, {.factors = factors}, array);
}

void Orthogonalizer::iterate(const Lane& lane, const Shape& shape, const Workspace& space, const float* from,
                             float* to) const {
  const std::int64_t count = shape.side() * shape.side();
  float *const gram = floats(space.gram), *const power = floats(space.power);
  void* const packed = space.packed.data();
  const auto product = [&](const LinearPrimitive& primitive, const float* x, const float* weights, float* y) {
    if (primitive.packed_bytes() > 0) primitive.pack(lane, weights, packed);
    primitive.forward(lane, x, weights, packed, nullptr, y);
  };
  if (shape.wide()) {
    if (shape.with_matrix->packed_bytes() > 0) shape.with_matrix->pack(lane, from, packed);
    shape.with_matrix->backward_data(lane, from, from, packed, gram);
  } else {
    shape.with_matrix->backward_weights(lane, from, from, gram);
  }
  product(*shape.square, gram, gram, power);
  const ElementwiseKernels& kernels = kernels_.elementwise;
  kernels.scale(lane, count, static_cast<float>(kC), power, power);
  kernels.scale(lane, count, static_cast<float>(kB), gram, gram);
  kernels.accumulate(lane, count, power, gram);
  kernels.accumulate(lane, count, power, floats(shape.diagonal));
  if (shape.wide())
    product(*shape.with_matrix, power, from, to);
  else
    product(*shape.with_matrix, from, power, to);
}

void Orthogonalizer::compute(const Lane& lane, std::size_t matrix, float* array) const {
  const Shape& shape = shapes_[shape_of_[matrix]];
  const Workspace& space = workspaces_[static_cast<std::size_t>(lane.index)];
  Lane own = lane;
  own.scratch = space.scratch.data();
  own.scratch_bytes = space.scratch.size_bytes();
  normalize(own, matrix, array);
  float* from = array + matrices_[matrix].place;
  float* to = floats(space.other);
  const std::int64_t count = shape.rows * shape.columns;
  // The last iteration must write the matrix itself.
  kernels_.elementwise.scale(own, count, 1 / kSmallestNorm, from, iterations_ % 2 == 0 ? from : to);
  if (iterations_ % 2 != 0) std::swap(from, to);
  for (int i = 0; i < iterations_; ++i, std::swap(from, to)) iterate(own, shape, space, from, to);
}

}  // namespace lockstep
