// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/circular.h"

namespace lockstep {

void CircularMargins::take(WindowAxes& axes, const std::array<bool, 3>& circular, std::int64_t channels,
                           const std::string& layer) {
  spec_ = {.channels = channels};
  any_ = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    WindowAxis& axis = axes[i];
    spec_.inner[i] = axis.in;
    if (!circular[i] || (axis.before == 0 && axis.after == 0)) continue;
    LOCKSTEP_REQUIRE(axis.before <= axis.in && axis.after <= axis.in, ErrorKind::config,
                     "layer {}: circular padding of {} and {} elements is more than the {} of the axis",
                     layer, axis.before, axis.after, axis.in);
    spec_.before[i] = axis.before;
    spec_.after[i] = axis.after;
    spec_.circular[i] = any_ = true;
    axis.in += axis.before + axis.after;
    axis.before = axis.after = 0;
  }
}

MarginSpec CircularMargins::spec(std::int64_t n) const {
  MarginSpec spec = spec_;
  spec.n = n;
  return spec;
}

std::size_t CircularMargins::bytes(std::int64_t n, DType type) const {
  if (!any_) return 0;
  std::int64_t count = n * spec_.channels;
  for (int i = 0; i < 3; ++i) count *= spec_.before[i] + spec_.inner[i] + spec_.after[i];
  Scratch scratch;
  scratch.take<std::byte>(count * static_cast<std::int64_t>(size_in_bytes(type)));
  return scratch.used_bytes();
}

CircularMargins::Padded CircularMargins::room(const Pass& pass, DType type) const {
  Scratch scratch(pass.lane.scratch);
  std::byte* const values = scratch.take<std::byte>(static_cast<std::int64_t>(bytes(pass.n, type)));
  return {Data(values, type), scratch.rest_of(pass.lane)};
}

CircularMargins::Padded CircularMargins::padded(const Pass& pass) const {
  const Padded made = room(pass, pass.inputs[0].type());
  pass.kernels.spatial.pad(pass.lane, spec(pass.n), pass.inputs[0], 0.0F, made.values);
  return made;
}

void CircularMargins::backward(const Pass& pass, ConstData padded, Data dx) const {
  pass.kernels.spatial.pad_backward(pass.lane, spec(pass.n), padded, dx);
}

}  // namespace lockstep
