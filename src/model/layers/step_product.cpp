// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/step_product.h"

#include <algorithm>

namespace lockstep {

void StepProduct::declare(VariableStore& variables) {
  kernel_ = variables.declare(o_.kernel, Shape{o_.in + o_.units, o_.width}, o_.kernel_initializer);
  bias_ = variables.declare(o_.bias, Shape{o_.width}, o_.bias_initializer);
  if (!o_.recurrent_bias.empty())
    recurrent_bias_ = variables.declare(o_.recurrent_bias, Shape{o_.width}, o_.bias_initializer);
}

void StepProduct::prepare(const PrepareContext& context, DType dtype) {
  for (const std::int64_t n : context.sample_counts) {
    DenseSpec all{.n = n * o_.steps, .in = o_.in, .out = o_.width, .bias = true, .dtype = dtype};
    all.training = context.training;
    all.packed = all.wide_y = true;
    DenseSpec one{.n = n, .in = o_.units, .out = o_.width, .dtype = dtype};
    one.training = context.training;
    one.packed = one.wide_y = one.wide_dx = true;
    one.bias = !o_.recurrent_bias.empty();
    // The rows of a step follow those of other steps, and h's part of the kernel follows x's.
    const auto whole = static_cast<std::int64_t>(16 / size_in_bytes(dtype));  // elements in 16 bytes
    one.aligned = n * o_.units % whole == 0 && n * o_.width % whole == 0 && o_.in * o_.width % whole == 0;
    DenseSpec gradient{.n = n * (o_.steps - 1), .in = o_.units, .out = o_.width, .dtype = dtype};
    gradient.aligned = one.aligned;
    Sized made{n,
               context.training,
               context.kernels.make.dense(all, context.lanes),
               context.kernels.make.dense(one, context.lanes),
               nullptr,
               0,
               0};
    if (context.training && o_.steps > 1) made.gradient = context.kernels.make.dense(gradient, context.lanes);
    for (const auto* primitive : {&made.all, &made.one, &made.gradient})
      if (*primitive != nullptr) scratch_bytes_ = std::max(scratch_bytes_, (*primitive)->scratch_bytes());
    if (made.gradient != nullptr) packs_.note(*made.gradient);
    made.all_pack = packs_.add(context, *made.all);
    made.one_pack = packs_.add(context, *made.one, o_.in * o_.width);
    sized_.push_back(std::move(made));
  }
  scratch_bytes_ = std::max(scratch_bytes_, context.kernels.scratch_bytes);
}

void StepProduct::refresh(const Lane& lane, const VariableStore& variables) {
  packs_.refresh(lane, variables.value(kernel_));
}

const StepProduct::Sized& StepProduct::sized(const Pass& pass) const {
  for (const Sized& candidate : sized_)
    if (candidate.n == pass.n && candidate.training == pass.training) return candidate;
  LOCKSTEP_CHECK(false, "{} was not prepared for {} samples", o_.kernel, pass.n);
  return sized_.front();
}

void StepProduct::all_steps(const Pass& pass, const Lane& lane, ConstData x, Data y) const {
  const Sized& made = sized(pass);
  made.all->forward(lane, x, pass.value(kernel_), packs_[made.all_pack], pass.value(bias_), y);
}

void StepProduct::one_step(const Pass& pass, const Lane& lane, ConstData h, Data y) const {
  const Sized& made = sized(pass);
  made.one->forward(lane, h, pass.value(kernel_) + o_.in * o_.width, packs_[made.one_pack],
                    o_.recurrent_bias.empty() ? nullptr : pass.value(recurrent_bias_), y);
}

RecurrentTerm::Factors StepProduct::factors(const Pass& pass, ConstData left) const {
  const Sized& made = sized(pass);
  if (left.type() != DType::f32) return {left, {packs_[made.one_pack], left.type()}};
  return {left, pass.value(kernel_) + o_.in * o_.width};
}

void StepProduct::one_step_backward(const Pass& pass, const Lane& lane, ConstData dy, Data dh) const {
  const Sized& made = sized(pass);
  made.one->backward_data(lane, dy, pass.value(kernel_) + o_.in * o_.width, packs_[made.one_pack], dh);
}

void StepProduct::all_steps_backward(const Pass& pass, const Lane& lane, ConstData x, ConstData dy,
                                     Data dx) const {
  const Sized& made = sized(pass);
  if (pass.wants(kernel_)) made.all->backward_weights(lane, x, dy, pass.gradient(kernel_));
  if (pass.wants(bias_))
    pass.kernels.elementwise.mask_and_sum_rows(lane, pass.n * o_.steps, o_.width, dy, nullptr, nullptr,
                                               pass.gradient(bias_));
  if (dx != nullptr) made.all->backward_data(lane, dy, pass.value(kernel_), packs_[made.all_pack], dx);
}

void StepProduct::recurrent_bias_gradient(const Pass& pass, const Lane& lane, ConstData dy) const {
  if (pass.wants(recurrent_bias_))
    pass.kernels.elementwise.mask_and_sum_rows(lane, pass.n * o_.steps, o_.width, dy, nullptr, nullptr,
                                               pass.gradient(recurrent_bias_));
}

void StepProduct::recurrent_gradient(const Pass& pass, const Lane& lane, ConstData h, ConstData dy) const {
  if (!pass.wants(kernel_)) return;
  const Sized& made = sized(pass);
  float* gradient = pass.gradient(kernel_) + o_.in * o_.width;
  if (made.gradient == nullptr)
    pass.kernels.elementwise.zero(lane, o_.units * o_.width, gradient);
  else
    made.gradient->backward_weights(lane, h, dy, gradient);
}

}  // namespace lockstep
