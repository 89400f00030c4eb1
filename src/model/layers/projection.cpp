// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/projection.h"

#include <algorithm>

namespace lockstep {

void Projection::declare(VariableStore& variables, const std::string& prefix,
                         const std::shared_ptr<const Initializer>& kernel_initializer,
                         const std::shared_ptr<const Initializer>& bias_initializer) {
  kernel_id_ = variables.declare(prefix + "_kernel", Shape{in_, out_}, kernel_initializer);
  if (bias_) bias_id_ = variables.declare(prefix + "_bias", Shape{out_}, bias_initializer);
}

void Projection::prepare(const PrepareContext& context, DType dtype) {
  for (std::int64_t n : context.sample_counts) {
    auto primitive = context.kernels.make.dense({.n = n * positions_,
                                                 .in = in_,
                                                 .out = out_,
                                                 .bias = bias_,
                                                 .training = context.training,
                                                 .dtype = dtype},
                                                context.lanes);
    scratch_bytes_ = std::max({scratch_bytes_, primitive->scratch_bytes(), context.kernels.scratch_bytes});
    const std::size_t pack = packs_.add(context, *primitive);
    sized_.push_back({n, context.training, std::move(primitive), pack});
  }
}

void Projection::refresh(const Lane& lane, const VariableStore& variables) const {
  packs_.refresh(lane, variables.value(kernel_id_));
}

const Projection::Sized& Projection::sized(const Pass& pass) const {
  for (const Sized& candidate : sized_)
    if (candidate.n == pass.n && candidate.training == pass.training) return candidate;
  LOCKSTEP_CHECK(false, "a projection was not prepared for {} samples", pass.n);
  return sized_.front();
}

void Projection::forward(const Pass& pass, const Lane& lane, ConstData x, Data y) const {
  const Sized& made = sized(pass);
  made.primitive->forward(lane, x, pass.value(kernel_id_), packs_[made.pack],
                          bias_ ? pass.value(bias_id_) : nullptr, y);
}

void Projection::backward(const Pass& pass, const Lane& lane, ConstData x, ConstData dy, Data dx) const {
  if (bias_ && pass.wants(bias_id_))
    pass.kernels.elementwise.mask_and_sum_rows(lane, pass.n * positions_, out_, dy, nullptr, nullptr,
                                               pass.gradient(bias_id_));
  const Sized& made = sized(pass);
  if (pass.wants(kernel_id_)) made.primitive->backward_weights(lane, x, dy, pass.gradient(kernel_id_));
  if (dx != nullptr) made.primitive->backward_data(lane, dy, pass.value(kernel_id_), packs_[made.pack], dx);
}

}  // namespace lockstep
