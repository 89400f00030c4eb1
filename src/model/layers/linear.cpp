// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/linear.h"

#include <algorithm>

namespace lockstep {

void LinearLayer::declare(VariableStore& variables) {
  kernel_id_ = variables.declare(name() + "/kernel", kernel_shape(), kernel_initializer_);
  if (bias_) bias_id_ = variables.declare(name() + "/bias", Shape{output_shape().last()}, bias_initializer_);
}

LayerMemory LinearLayer::prepare(const PrepareContext& context) {
  LayerMemory memory;
  for (std::int64_t n : context.sample_counts) {
    auto primitive = make_primitive(context, n);
    memory.scratch_bytes =
        std::max(memory.scratch_bytes, margins_.bytes(n, context.type) + primitive->scratch_bytes());
    const std::size_t pack = packs_.add(context, *primitive);
    sized_.push_back({n, context.training, std::move(primitive), pack});
  }
  return memory;
}

void LinearLayer::refresh_weights(const KernelTable&, const Lane& lane, const VariableStore& variables,
                                  bool /*training*/) {
  packs_.refresh(lane, variables.value(kernel_id_));
}

const LinearLayer::Sized& LinearLayer::sized(const Pass& pass) const {
  for (const Sized& candidate : sized_)
    if (candidate.n == pass.n && candidate.training == pass.training) return candidate;
  LOCKSTEP_CHECK(false, "layer {} was not prepared for {} samples", name(), pass.n);
  return sized_.front();
}

void LinearLayer::forward(const Pass& pass) {
  const Sized& made = sized(pass);
  const auto run = [&](const Lane& lane, ConstData x) {
    made.primitive->forward(lane, x, pass.value(kernel_id_), packs_[made.pack],
                            bias_ ? pass.value(bias_id_) : nullptr, pass.outputs[0]);
  };
  if (!margins_.any()) return run(pass.lane, pass.inputs[0]);
  const CircularMargins::Padded x = margins_.padded(pass);
  run(x.lane, x.values);
}

void LinearLayer::backward(const Pass& pass) {
  const Sized& made = sized(pass);
  const std::int64_t channels = output_shape().last();
  const std::int64_t rows = pass.n * output_shape().num_elements() / channels;
  const Data g = pass.dy[0];
  if (bias_ && pass.wants(bias_id_))
    pass.kernels.elementwise.mask_and_sum_rows(pass.lane, rows, channels, g,
                                               relu_ ? pass.outputs[0] : nullptr, relu_ ? g : nullptr,
                                               pass.gradient(bias_id_));
  else if (relu_)
    pass.kernels.elementwise.relu_backward(pass.lane, rows * channels, g, pass.outputs[0], g);
  if (margins_.any()) return backward_with_margins(pass);
  if (pass.wants(kernel_id_))
    made.primitive->backward_weights(pass.lane, pass.inputs[0], g, pass.gradient(kernel_id_));
  if (pass.dx[0] != nullptr)
    made.primitive->backward_data(pass.lane, g, pass.value(kernel_id_), packs_[made.pack], pass.dx[0]);
}

void LinearLayer::backward_with_margins(const Pass& pass) {
  const Sized& made = sized(pass);
  if (pass.wants(kernel_id_)) {
    const CircularMargins::Padded x = margins_.padded(pass);
    made.primitive->backward_weights(x.lane, x.values, pass.dy[0], pass.gradient(kernel_id_));
  }
  if (pass.dx[0] == nullptr) return;
  const CircularMargins::Padded dx = margins_.room(pass, pass.dx[0].type());
  made.primitive->backward_data(dx.lane, pass.dy[0], pass.value(kernel_id_), packs_[made.pack], dx.values);
  margins_.backward(pass, dx.values, pass.dx[0]);
}

}  // namespace lockstep
