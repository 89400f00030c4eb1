// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// max_pool, avg_pool and global_max_pool.
#include <algorithm>

#include "config/option.h"
#include "model/layer_table.h"
#include "model/layers/circular.h"

namespace lockstep {

namespace {

/// Null takes the window.
std::vector<std::int64_t> stride_of(const Params& p, const ParamSpec& option) {
  return p.has(option.name) ? axes_as<0>(p, option) : std::vector<std::int64_t>();
}

constexpr ParamSpec kTable[] = {
    option_as<axes_as<0>, &WindowOptions::window>(ParamType::integers, "window", "2", between(1, 65536),
                                                  "window: one number, or one per axis: [height, width]"),
    option_as<stride_of, &WindowOptions::stride>(ParamType::integers, "stride", "null",
                                                 between(1, 65536).or_null(),
                                                 "step of the window; the default is the window"),
    option<&WindowOptions::padding>(
        "padding", "valid", {},
        "same, valid or before and after of each axis ([top, bottom, left, right]); padding is never the "
        "maximum and not counted in a mean"),
    option<&WindowOptions::circular>("circular", "[]", {}, kCircularHelp),
};

/// Windows over one to three spatial axes, by the rank of the input. The global form, which has no options,
/// uses one window over all positions.
class Pool final : public Layer {
 public:
  Pool(std::string name, const char* kind, PoolKind pool, WindowOptions windows)
      : Pool(std::move(name), kind, pool) {
    windows_ = std::move(windows);
    if (windows_.stride.empty()) windows_.stride = windows_.window;
    global_ = false;
  }
  Pool(std::string name, const char* kind, PoolKind pool)
      : Layer(std::move(name)), kind_(kind), pool_(pool) {}

  LayerTraits traits() const override {
    return {
        .kind = kind_, .inputs = TypeRule::model, .outputs = TypeRule::model, .backward_reads_input = false};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    if (global_) return {infer_global(inputs)};
    const int axes = spatial_axes(inputs, 1, 3, kind_, name());
    axes_ = window_axes(inputs[0], windows_, name());
    for (const WindowAxis& axis : axes_)
      LOCKSTEP_REQUIRE(axis.before < axis.window && axis.after < axis.window, ErrorKind::config,
                       "layer {}: padding must be smaller than the window", name());
    channels_ = inputs[0].last();
    margins_.take(axes_, circular_axes(windows_.circular, axes, name()), channels_, name());
    return {spatial_shape({axes_[0].out, axes_[1].out, axes_[2].out}, axes, channels_)};
  }

  LayerMemory prepare(const PrepareContext& context) override {
    const auto& [d, h, w] = axes_;
    LayerMemory memory;
    for (std::int64_t n : context.sample_counts) {
      sized_.push_back({n, context.training,
                        context.kernels.make.pool({.kind = pool_,
                                                   .n = n,
                                                   .in_d = d.in,
                                                   .in_h = h.in,
                                                   .in_w = w.in,
                                                   .channels = channels_,
                                                   .out_d = d.out,
                                                   .out_h = h.out,
                                                   .out_w = w.out,
                                                   .window_d = d.window,
                                                   .window_h = h.window,
                                                   .window_w = w.window,
                                                   .stride_d = d.stride,
                                                   .stride_h = h.stride,
                                                   .stride_w = w.stride,
                                                   .pad_front = d.before,
                                                   .pad_back = d.after,
                                                   .pad_top = h.before,
                                                   .pad_bottom = h.after,
                                                   .pad_left = w.before,
                                                   .pad_right = w.after,
                                                   .training = context.training,
                                                   .dtype = context.type},
                                                  context.lanes)});
      const PoolPrimitive& primitive = *sized_.back().primitive;
      memory.scratch_bytes =
          std::max(memory.scratch_bytes, margins_.bytes(n, context.type) + primitive.scratch_bytes());
      if (context.training) memory.saved_bytes = std::max(memory.saved_bytes, primitive.saved_bytes());
    }
    return memory;
  }

  void forward(const Pass& pass) override {
    if (!margins_.any())
      return primitive(pass).forward(pass.lane, pass.inputs[0], pass.outputs[0], pass.saved);
    const CircularMargins::Padded x = margins_.padded(pass);
    primitive(pass).forward(x.lane, x.values, pass.outputs[0], pass.saved);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    if (!margins_.any()) return primitive(pass).backward(pass.lane, pass.dy[0], pass.saved, pass.dx[0]);
    const CircularMargins::Padded dx = margins_.room(pass, pass.dx[0].type());
    primitive(pass).backward(dx.lane, pass.dy[0], pass.saved, dx.values);
    margins_.backward(pass, dx.values, pass.dx[0]);
  }

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

  /// Treats all positions as one row, and the row as one window.
  Shape infer_global(std::span<const Shape> inputs) {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() >= 2, ErrorKind::config,
                     "layer {}: {} takes one input of space x channels per sample, not {}", name(), kind_,
                     inputs.empty() ? "nothing" : inputs[0].to_string());
    channels_ = inputs[0].last();
    const std::int64_t positions = inputs[0].num_elements() / channels_;
    axes_ = {};
    axes_[2] = {.in = positions, .window = positions, .stride = positions};
    return Shape{channels_};
  }

  const char* kind_;
  PoolKind pool_;
  bool global_ = true;
  WindowOptions windows_;
  WindowAxes axes_;
  CircularMargins margins_;
  std::int64_t channels_ = 0;
  std::vector<Sized> sized_;
};

template <PoolKind kKind>
std::unique_ptr<Layer> make(std::string name, const Params& p) {
  return std::make_unique<Pool>(std::move(name), kKind == PoolKind::max ? "max_pool" : "avg_pool", kKind,
                                p.as<WindowOptions>());
}

}  // namespace

extern const LayerEntry kMaxPoolLayer = {"max_pool", "maximum over windows", kTable, make<PoolKind::max>};
extern const LayerEntry kAvgPoolLayer = {"avg_pool", "mean over windows", kTable, make<PoolKind::average>};
extern const LayerEntry kGlobalMaxPoolLayer = {"global_max_pool",
                                               "maximum over all positions of each channel",
                                               {},
                                               [](std::string name, const Params&) -> std::unique_ptr<Layer> {
                                                 return std::make_unique<Pool>(
                                                     std::move(name), "global_max_pool", PoolKind::max);
                                               }};

}  // namespace lockstep
