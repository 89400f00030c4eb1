// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// upsample: sequences, images or volumes of higher resolution.
#include "config/option.h"
#include "model/layer_table.h"
#include "model/layers/window.h"

namespace lockstep {

namespace {

struct UpsampleOptions {
  std::vector<std::int64_t> factor;
  bool bilinear = false, align_corners = false;
};
using Options = UpsampleOptions;
constexpr ParamSpec kTable[] = {
    option_as<axes_as<0>, &Options::factor>(
        ParamType::integers, "factor", "2", between(1, 65536),
        "factor by which each axis becomes longer: one number, or one per axis"),
    option_as<is_second_choice, &Options::bilinear>(
        ParamType::string, "method", "nearest", one_of("nearest|bilinear"),
        "repeat elements, or interpolate linearly along height and width"),
    option<&Options::align_corners>(
        "align_corners", "false", {},
        "bilinear: align the corner elements of input and output; false: align their outer edges"),
};

class Upsample final : public Layer {
 public:
  using Options = UpsampleOptions;
  Upsample(std::string name, const Options& o, const Params& p)
      : Layer(std::move(name)), factor_(o.factor), bilinear_(o.bilinear) {
    spec_.align_corners = o.align_corners;
    if (spec_.align_corners && !bilinear_)
      throw p.error(option_name<&Options::align_corners>(p),
                    "align_corners is for bilinear interpolation only",
                    "Remove it, or set method: bilinear.");
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

}  // namespace

extern const LayerEntry kUpsampleLayer = {"upsample", "sequences, images or volumes of higher resolution",
                                          kTable, make_layer<Upsample>};

}  // namespace lockstep
