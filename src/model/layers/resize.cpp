// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers that change the size of sequences, images and volumes without variables: upsample, pad, crop. Values
// that are moved stay of the type in which they come.
#include "model/layers/entries.h"
#include "model/layers/window.h"

namespace lockstep {

namespace {

constexpr ParamSpec kUpsampleTable[] = {
    {"factor", ParamType::integers, "2", "",
     "how many times as long each axis becomes: one number, or one per axis"},
    {"method", ParamType::string, "nearest", "nearest|bilinear",
     "repeat elements, or interpolate linearly along height and width"},
    {"align_corners", ParamType::boolean, "false", "",
     "bilinear: corner elements of input and output lie on each other; false: their outer edges do"},
};

class Upsample final : public Layer {
 public:
  Upsample(std::string name, const Params& p)
      : Layer(std::move(name)),
        factor_(axes_option(p, "factor", 0)),
        bilinear_(p.string("method") == "bilinear") {
    spec_.align_corners = p.boolean("align_corners");
    if (spec_.align_corners && !bilinear_)
      throw p.error("align_corners", "only bilinear interpolation knows align_corners",
                    "Leave it out, or set method: bilinear.");
  }
  LayerTraits traits() const override {
    const TypeRule type = bilinear_ ? TypeRule::model : TypeRule::first_input;
    return {.kind = "upsample", .inputs = type, .outputs = type, .backward_reads_input = false};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    const int axes = bilinear_ ? spatial_axes(inputs, 2, 2, "bilinear upsample", name())
                               : spatial_axes(inputs, 1, 3, "upsample", name());
    const Extents in = spatial_extents(inputs[0]), factor = per_axis(factor_, axes, 1, name(), "factor");
    Extents out{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      spec_.in[i] = in[i];
      spec_.factor[i] = factor[i];
      out[i] = in[i] * factor[i];
    }
    spec_.channels = inputs[0].last();
    return {spatial_shape(out, axes, spec_.channels)};
  }
  void forward(const Pass& pass) override {
    const SpatialKernels& spatial = pass.kernels.spatial;
    if (bilinear_)
      spatial.upsample_bilinear(pass.lane, spec(pass), pass.inputs[0], pass.outputs[0]);
    else
      spatial.upsample_nearest(pass.lane, spec(pass), pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    const SpatialKernels& spatial = pass.kernels.spatial;
    if (bilinear_)
      spatial.upsample_bilinear_backward(pass.lane, spec(pass), pass.dy[0], pass.dx[0]);
    else
      spatial.upsample_nearest_backward(pass.lane, spec(pass), pass.dy[0], pass.dx[0]);
  }

 private:
  UpsampleSpec spec(const Pass& pass) const {
    UpsampleSpec spec = spec_;
    spec.n = pass.n;
    return spec;
  }
  std::vector<std::int64_t> factor_;
  bool bilinear_;
  UpsampleSpec spec_;
};

constexpr ParamSpec kPadTable[] = {
    {"padding", ParamType::node, kRequired, "",
     "elements before and after each axis: [before, after], [top, bottom, left, right] or "
     "[front, back, top, bottom, left, right]"},
    {"value", ParamType::real, "0", "", "what they are"},
};
constexpr ParamSpec kCropTable[] = {
    {"cropping", ParamType::node, kRequired, "",
     "elements to cut off before and after each axis: [before, after], [top, bottom, left, right] or "
     "[front, back, top, bottom, left, right]"},
};

/// pad and crop: each is the other's gradient.
class MarginLayer final : public Layer {
 public:
  MarginLayer(std::string name, bool pads, Node sides, double value)
      : Layer(std::move(name)), pads_(pads), sides_(std::move(sides)), value_(static_cast<float>(value)) {}
  LayerTraits traits() const override {
    return {.kind = pads_ ? "pad" : "crop",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .backward_reads_input = false};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    const int axes = spatial_axes(inputs, 1, 3, kind(), name());
    const Margins sides = margins(sides_, axes, name(), pads_ ? "padding" : "cropping");
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
    if (pads_)
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
  MarginSpec spec_;
};

}  // namespace

const LayerEntry kUpsampleLayer = {"upsample", "sequences, images or volumes of higher resolution",
                                   kUpsampleTable,
                                   [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                     return std::make_unique<Upsample>(std::move(name), p);
                                   }};
const LayerEntry kPadLayer = {"pad", "a constant around sequences, images or volumes", kPadTable,
                              [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                return std::make_unique<MarginLayer>(std::move(name), true, p.node("padding"),
                                                                     p.real("value"));
                              }};
const LayerEntry kCropLayer = {"crop", "the inner part of sequences, images or volumes", kCropTable,
                               [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                 return std::make_unique<MarginLayer>(std::move(name), false,
                                                                      p.node("cropping"), 0.0);
                               }};

}  // namespace lockstep
