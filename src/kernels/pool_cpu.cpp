// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling on the CPU by oneDNN, channels last.
#include <algorithm>

#include "core/error.h"
#include "kernels/factory_cpu.h"
#include "kernels/onednn.h"

namespace lockstep {
namespace {

using onednn::Desc;
using onednn::Execution;
using onednn::Tag;

class CpuPool final : public PoolPrimitive {
 public:
  CpuPool(const PoolSpec& spec, int lanes) : spec_(spec) {
    LOCKSTEP_CHECK(spec.n > 0 && spec.in_h > 0 && spec.in_w > 0 && spec.channels > 0, "n {} in {}x{}x{}",
                   spec.n, spec.in_h, spec.in_w, spec.channels);
    onednn::create(fmt::format("a {}x{} {} pool of {}x{}x{}x{}, stride {}x{}", spec.window_h, spec.window_w,
                               spec.kind == PoolKind::max ? "max" : "average", spec.n, spec.in_h, spec.in_w,
                               spec.channels, spec.stride_h, spec.stride_w),
                   [&] {
                     build(lanes);
                     return 0;
                   });
  }

  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t saved_bytes() const override { return saved_bytes_; }

  void forward(const Lane& lane, const float* x, float* y, void* saved) const override {
    require_scratch(lane);
    if (saved_bytes_ > 0)
      forward_.run(lane, {x, y, lane.scratch, saved});
    else
      forward_.run(lane, {x, y, lane.scratch});
  }

  void backward(const Lane& lane, const float* dy, const void* saved, float* dx) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    require_scratch(lane);
    if (saved_bytes_ > 0)
      backward_.run(lane, {dy, dx, lane.scratch, saved});
    else
      backward_.run(lane, {dy, dx, lane.scratch});
  }

 private:
  void build(int lanes) {
    const PoolSpec& s = spec_;
    const onednn::PoolDescs descs{
        s.kind == PoolKind::max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding,
        onednn::f32({s.n, s.channels, s.in_h, s.in_w}, Tag::nhwc),
        onednn::f32({s.n, s.channels, s.out_h, s.out_w}, Tag::nhwc),
        {s.window_h, s.window_w},
        {s.stride_h, s.stride_w},
        {s.pad_top, s.pad_left},
        {s.pad_bottom, s.pad_right},
        s.training};
    const auto forward = onednn::pool_forward(descs, onednn::attributes());
    scratch_bytes_ = forward.scratchpad_desc().get_size();
    std::vector<Execution::Argument> arguments{
        {DNNL_ARG_SRC, descs.x}, {DNNL_ARG_DST, descs.y}, {DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc()}};
    Desc saved;
    if (s.training && s.kind == PoolKind::max) {
      saved = forward.workspace_desc();
      saved_bytes_ = saved.get_size();
      arguments.push_back({DNNL_ARG_WORKSPACE, saved});
    }
    forward_ = Execution(dnnl::pooling_forward(forward), "pool forward", arguments, lanes);
    if (!s.training) return;

    const auto backward = onednn::pool_backward(descs, onednn::attributes(), forward);
    scratch_bytes_ = std::max(scratch_bytes_, backward.scratchpad_desc().get_size());
    arguments = {{DNNL_ARG_DIFF_DST, descs.y},
                 {DNNL_ARG_DIFF_SRC, descs.x},
                 {DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc()}};
    if (saved_bytes_ > 0) arguments.push_back({DNNL_ARG_WORKSPACE, saved});
    backward_ = Execution(dnnl::pooling_backward(backward), "pool backward", arguments, lanes);
  }

  void require_scratch(const Lane& lane) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes_, "lane {} brings {} bytes of scratch, {} needed",
                   lane.index, lane.scratch_bytes, scratch_bytes_);
  }

  PoolSpec spec_;
  Execution forward_, backward_;
  std::size_t scratch_bytes_ = 0, saved_bytes_ = 0;
};

}  // namespace

std::unique_ptr<PoolPrimitive> make_cpu_pool(const PoolSpec& spec, int lanes) {
  return std::make_unique<CpuPool>(spec, lanes);
}

}  // namespace lockstep
