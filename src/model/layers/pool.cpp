// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/layers/entries.h"
#include "model/layers/window.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    {"window", ParamType::integers, "2", "", "window: one number or [height, width]"},
    {"stride", ParamType::integers, "null", "", "step of the window; the default is the window"},
    {"padding", ParamType::node, "valid", "",
     "same, valid or [top, bottom, left, right]; padding is never the maximum and not counted in a mean"},
};

class Pool final : public Layer {
 public:
  Pool(std::string name, const Params& p, PoolKind pool)
      : Layer(std::move(name)),
        pool_(pool),
        window_(pair_option(p, "window")),
        stride_(p.has("stride") ? pair_option(p, "stride") : window_),
        padding_(p.node("padding")) {}

  const char* kind() const override { return pool_ == PoolKind::max ? "max_pool" : "avg_pool"; }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() == 3, ErrorKind::config,
                     "layer {}: {} takes one input of height x width x channels per sample, not {}", name(),
                     kind(), inputs.empty() ? "nothing" : inputs[0].to_string());
    axes_ = window_axes(inputs[0][0], inputs[0][1], window_, stride_, {1, 1}, padding_, name());
    for (const WindowAxis& axis : axes_)
      LOCKSTEP_REQUIRE(axis.before < axis.window && axis.after < axis.window, ErrorKind::config,
                       "layer {}: padding must be smaller than the window", name());
    channels_ = inputs[0][2];
    return {Shape{axes_[0].out, axes_[1].out, channels_}};
  }

  void prepare(const PrepareContext& context) override {
    const auto& [h, w] = axes_;
    for (std::int64_t n : context.sample_counts) {
      sized_.push_back({n, context.training,
                        context.kernels.make.pool({.kind = pool_,
                                                   .n = n,
                                                   .in_h = h.in,
                                                   .in_w = w.in,
                                                   .channels = channels_,
                                                   .out_h = h.out,
                                                   .out_w = w.out,
                                                   .window_h = h.window,
                                                   .window_w = w.window,
                                                   .stride_h = h.stride,
                                                   .stride_w = w.stride,
                                                   .pad_top = h.before,
                                                   .pad_bottom = h.after,
                                                   .pad_left = w.before,
                                                   .pad_right = w.after,
                                                   .training = context.training},
                                                  context.lanes)});
      scratch_bytes_ = std::max(scratch_bytes_, sized_.back().primitive->scratch_bytes());
    }
  }

  void forward(const Pass& pass) override {
    primitive(pass).forward(pass.lane, pass.inputs[0], pass.outputs[0], pass.saved);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) primitive(pass).backward(pass.lane, pass.dy[0], pass.saved, pass.dx[0]);
  }

  std::size_t saved_bytes(std::int64_t n) const override {
    std::size_t most = 0;
    for (const Sized& sized : sized_)
      if (sized.training && sized.n <= n) most = std::max(most, sized.primitive->saved_bytes());
    return most;
  }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  bool backward_reads_input() const override { return false; }

 private:
  struct Sized {
    std::int64_t n;
    bool training;
    std::unique_ptr<PoolPrimitive> primitive;
  };
  const PoolPrimitive& primitive(const Pass& pass) const {
    for (const Sized& sized : sized_)
      if (sized.n == pass.n && sized.training == pass.training) return *sized.primitive;
    LOCKSTEP_CHECK(false, "layer {} was not prepared for {} samples", name(), pass.n);
    return *sized_.front().primitive;
  }

  PoolKind pool_;
  std::array<std::int64_t, 2> window_, stride_;
  Node padding_;
  std::array<WindowAxis, 2> axes_;
  std::int64_t channels_ = 0;
  std::vector<Sized> sized_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace

const LayerEntry kMaxPoolLayer = {"max_pool", "maximum over windows", kTable,
                                  [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                    return std::make_unique<Pool>(std::move(name), p, PoolKind::max);
                                  }};
const LayerEntry kAvgPoolLayer = {"avg_pool", "mean over windows", kTable,
                                  [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                    return std::make_unique<Pool>(std::move(name), p, PoolKind::average);
                                  }};

}  // namespace lockstep
