// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// pad and crop: add or remove elements at the borders of sequences, images or volumes. Each is the gradient
// of the other, but for circular axes, along which pad repeats its input.
#include "config/option.h"
#include "model/layer_table.h"
#include "model/layers/circular.h"

namespace lockstep {

namespace {

struct MarginOptions {
  Node sides;
  float value = 0;
  std::vector<std::string> circular;
};
constexpr ParamSpec kPadTable[] = {
    option<&MarginOptions::sides>(
        "padding", kRequired, {},
        "elements before and after each axis: [before, after], [top, bottom, left, right] or "
        "[front, back, top, bottom, left, right]"),
    option<&MarginOptions::value>("value", "0", between(-1e30, 1e30), "value of the added elements"),
    option<&MarginOptions::circular>("circular", "[]", {}, kCircularHelp),
};
constexpr ParamSpec kCropTable[] = {
    option<&MarginOptions::sides>("cropping", kRequired, {},
                                  "elements to remove before and after each axis: [before, after], [top, "
                                  "bottom, left, right] or [front, "
                                  "back, top, bottom, left, right]"),
};

/// On a side; sums of two do not overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 31;

class MarginLayer final : public Layer {
 public:
  MarginLayer(std::string name, bool pads, const MarginOptions& o)
      : Layer(std::move(name)), pads_(pads), sides_(o.sides), value_(o.value), circular_(o.circular) {}
  LayerTraits traits() const override {
    return {.kind = pads_ ? "pad" : "crop",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .backward_reads_input = false};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    const int axes = spatial_axes(inputs, 1, 3, kind(), name());
    const Margins sides = margins(sides_, axes, name(), pads_ ? "padding" : "cropping", kMostElements);
    const std::array<bool, 3> circular = circular_axes(circular_, axes, name());
    const Extents in = spatial_extents(inputs[0]);
    Extents out{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int64_t more = sides.before[i] + sides.after[i];
      out[i] = pads_ ? in[i] + more : in[i] - more;
      LOCKSTEP_REQUIRE(out[i] >= 1, ErrorKind::config,
                       "layer {}: cropping {} and {} of {} elements leaves nothing", name(), sides.before[i],
                       sides.after[i], in[i]);
      spec_.before[i] = sides.before[i];
      spec_.after[i] = sides.after[i];
      spec_.inner[i] = pads_ ? in[i] : out[i];
      spec_.circular[i] = circular[i];
      LOCKSTEP_REQUIRE(!circular[i] || (sides.before[i] <= in[i] && sides.after[i] <= in[i]),
                       ErrorKind::config,
                       "layer {}: circular padding of {} and {} elements is more than the {} of the axis",
                       name(), sides.before[i], sides.after[i], in[i]);
    }
    spec_.channels = inputs[0].last();
    return {spatial_shape(out, axes, spec_.channels)};
  }
  void forward(const Pass& pass) override {
    if (pads_)
      pass.kernels.spatial.pad(pass.lane, spec(pass), pass.inputs[0], value_, pass.outputs[0]);
    else
      pass.kernels.spatial.crop(pass.lane, spec(pass), pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    if (pads_ && !circular_.empty())
      pass.kernels.spatial.pad_backward(pass.lane, spec(pass), pass.dy[0], pass.dx[0]);
    else if (pads_)
      pass.kernels.spatial.crop(pass.lane, spec(pass), pass.dy[0], pass.dx[0]);
    else
      pass.kernels.spatial.pad(pass.lane, spec(pass), pass.dy[0], 0.0F, pass.dx[0]);
  }

 private:
  MarginSpec spec(const Pass& pass) const {
    MarginSpec spec = spec_;
    spec.n = pass.n;
    return spec;
  }
  bool pads_;
  Node sides_;
  float value_;
  std::vector<std::string> circular_;
  MarginSpec spec_;
};

template <bool kPads>
std::unique_ptr<Layer> make(std::string name, const Params& p) {
  return std::make_unique<MarginLayer>(std::move(name), kPads, p.as<MarginOptions>());
}

}  // namespace

extern const LayerEntry kPadLayer = {"pad", "a constant around sequences, images or volumes", kPadTable,
                                     make<true>};
extern const LayerEntry kCropLayer = {"crop", "the inner part of sequences, images or volumes", kCropTable,
                                      make<false>};

}  // namespace lockstep
