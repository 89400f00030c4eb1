// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/moving_average.h"

#include "core/range.h"
#include "core/sizes.h"

namespace lockstep {

namespace {

constexpr std::int64_t kGrain = 1024;  ///< elements; threads share no cache line

std::int64_t elements(const Buffer& buffer) {
  return static_cast<std::int64_t>(buffer.size_bytes() / sizeof(float));
}

float* values(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

}  // namespace

bool has_average(const AverageRule& rule, const Variable& variable) {
  return variable.saved && !variable.frozen &&
         (variable.trainable || rule.statistics != AverageRule::Statistics::last);
}

MovingAverage::MovingAverage(const AverageRule& rule, const UpdateContext& context)
    : rule_(rule), progress_(AverageProgress::beginning(rule, 0)), context_(context) {
  const std::size_t bytes = static_cast<std::size_t>(context.variables.trainable_elements()) * sizeof(float),
                    others = rule.statistics != AverageRule::Statistics::last
                                 ? context.variables.changing_bytes()
                                 : 0;
  allocate_for("the moving average of the variables", [&] {
    trainable_ = Buffer(context.device, bytes);
    others_ = Buffer(context.device, others);
    if (context.device.is_host()) return;
    trainable_mirror_ = Buffer::pinned(context.device, bytes);
    others_mirror_ = Buffer::pinned(context.device, others);
  });
}

void MovingAverage::follow(std::int64_t step) {
  if (has_begun(step)) return;
  void* const stream = context_.lanes.front().stream;
  const VariableStore& variables = context_.variables;
  context_.device.copy(stream, trainable_.data(), variables.trainable_address(), trainable_.size_bytes());
  if (others_.size_bytes() > 0)
    context_.device.copy(stream, others_.data(), variables.others_address(), others_.size_bytes());
  device_changed();
}

void MovingAverage::update(const Lane& lane, Range part, float weight) {
  if (part.size() > 0)
    context_.kernels.elementwise.blend(lane, part.size(), values(trainable_) + part.first,
                                       context_.variables.trainable_address() + part.first, weight);
}

void MovingAverage::update_statistics(const Lane& lane, float weight) {
  if (rule_.statistics == AverageRule::Statistics::average && others_.size_bytes() > 0)
    context_.kernels.elementwise.blend(lane, elements(others_), values(others_),
                                       context_.variables.others_address(), weight);
}

void MovingAverage::exchange() {
  const ElementwiseKernels& kernels = context_.kernels.elementwise;
  context_.pool.run([&](int t) {
    const Lane& lane = context_.lanes[static_cast<std::size_t>(t)];
    const Range part = part_of(elements(trainable_), t, context_.pool.size(), kGrain);
    if (part.size() > 0)
      kernels.exchange(lane, part.size(), values(trainable_) + part.first,
                       context_.variables.trainable_address() + part.first);
    if (t == 0 && others_.size_bytes() > 0)
      kernels.exchange(lane, elements(others_), values(others_), context_.variables.others_address());
  });
  context_.variables.device_changed();
  device_changed();
}

float* MovingAverage::address(const Variable& variable) const {
  return values(variable.trainable ? trainable_ : others_) + variable.offset;
}

Tensor MovingAverage::tensor(const Variable& variable) const {
  if (context_.device.is_host()) return {address(variable), DType::f32, variable.shape};
  if (host_is_old_) {
    context_.device.copy_to_host(trainable_mirror_.data(), trainable_.data(), trainable_.size_bytes());
    if (others_.size_bytes() > 0)
      context_.device.copy_to_host(others_mirror_.data(), others_.data(), others_.size_bytes());
  }
  host_is_old_ = false;
  return {values(variable.trainable ? trainable_mirror_ : others_mirror_) + variable.offset, DType::f32,
          variable.shape};
}

void MovingAverage::to_device() {
  LOCKSTEP_CHECK(!host_is_old_, "old values would overwrite the device's");
  if (context_.device.is_host()) return;
  context_.device.copy_from_host(trainable_.data(), trainable_mirror_.data(), trainable_.size_bytes());
  if (others_.size_bytes() > 0)
    context_.device.copy_from_host(others_.data(), others_mirror_.data(), others_.size_bytes());
}

}  // namespace lockstep
