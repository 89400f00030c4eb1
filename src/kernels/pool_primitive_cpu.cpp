// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// PoolPrimitive on the CPU: checks the shape and calls PoolKernels.
#include "core/error.h"
#include "kernels/factory_cpu.h"
#include "kernels/pool.h"

namespace lockstep {
namespace {

void require_valid(const PoolSpec& s) {
  LOCKSTEP_CHECK(s.n > 0 && s.in_d > 0 && s.in_h > 0 && s.in_w > 0 && s.channels > 0, "n {} in {}x{}x{}x{}",
                 s.n, s.in_d, s.in_h, s.in_w, s.channels);
  const auto fits = [](std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                       std::int64_t front, std::int64_t back) {
    const std::int64_t last = (out - 1) * stride - front;  // start of the last window
    return out > 0 && window > 0 && stride > 0 && front >= 0 && back >= 0 && front < window && last < in &&
           last + window <= in + back;
  };
  LOCKSTEP_CHECK(fits(s.in_d, s.out_d, s.window_d, s.stride_d, s.pad_front, s.pad_back),
                 "out_d {} for in_d {}, window {}, stride {}, padding {} and {}", s.out_d, s.in_d, s.window_d,
                 s.stride_d, s.pad_front, s.pad_back);
  LOCKSTEP_CHECK(fits(s.in_h, s.out_h, s.window_h, s.stride_h, s.pad_top, s.pad_bottom),
                 "out_h {} for in_h {}, window {}, stride {}, padding {} and {}", s.out_h, s.in_h, s.window_h,
                 s.stride_h, s.pad_top, s.pad_bottom);
  LOCKSTEP_CHECK(fits(s.in_w, s.out_w, s.window_w, s.stride_w, s.pad_left, s.pad_right),
                 "out_w {} for in_w {}, window {}, stride {}, padding {} and {}", s.out_w, s.in_w, s.window_w,
                 s.stride_w, s.pad_left, s.pad_right);
}

class CpuPool final : public PoolPrimitive {
 public:
  CpuPool(const PoolSpec& spec, const PoolKernels& kernels) : spec_(spec), kernels_(kernels) {
    require_valid(spec);
  }

  std::size_t scratch_bytes() const override {
    if (!spec_.training || spec_.dtype == DType::f32 || spec_.tiles()) return 0;
    return static_cast<std::size_t>(spec_.in_d * spec_.in_h * spec_.in_w * spec_.channels) * sizeof(float);
  }
  std::size_t saved_bytes() const override {
    if (!spec_.training || spec_.kind == PoolKind::average) return 0;
    return static_cast<std::size_t>(spec_.n * spec_.out_d * spec_.out_h * spec_.out_w * spec_.channels) *
           sizeof(std::int32_t);
  }

  void forward(const Lane&, ConstData x, Data y, void* saved) const override {
    require_types(x, y);
    if (spec_.kind == PoolKind::max)
      kernels_.max_forward(spec_, x, y, spec_.training ? static_cast<std::int32_t*>(saved) : nullptr);
    else
      kernels_.average_forward(spec_, x, y);
  }

  void backward(const Lane& lane, ConstData dy, const void* saved, Data dx) const override {
    require_types(dy, dx);
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "the lane has {} bytes of scratch, needs {}",
                   lane.scratch_bytes, scratch_bytes());
    auto* sums = static_cast<float*>(lane.scratch);
    if (spec_.kind == PoolKind::max)
      kernels_.max_backward(spec_, dy, static_cast<const std::int32_t*>(saved), dx, sums);
    else
      kernels_.average_backward(spec_, dy, dx, sums);
  }

 private:
  void require_types(ConstData from, Data to) const {
    LOCKSTEP_CHECK(from.type() == spec_.dtype && to.type() == spec_.dtype, "{} and {} for a primitive of {}",
                   name_of(from.type()), name_of(to.type()), name_of(spec_.dtype));
  }

  PoolSpec spec_;
  const PoolKernels& kernels_;
};

}  // namespace

std::unique_ptr<PoolPrimitive> make_cpu_pool(const PoolSpec& spec, const PoolKernels& kernels) {
  return std::make_unique<CpuPool>(spec, kernels);
}

}  // namespace lockstep
