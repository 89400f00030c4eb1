// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d_transpose and conv3d_transpose.
#include "kernels/transposed_convolution.h"
#include "model/layer_table.h"
#include "model/layers/convolution.h"

namespace lockstep {

namespace {

// clang-format off: one table per number of axes, line by line the same
#define LOCKSTEP_TRANSPOSED_OPTIONS(axes, window, padding, layout)                      \
  filters_option(), kernel_option<axes>(window),                                        \
      stride_option<axes>("factor by which the output is larger"),                      \
      padding_option("same, valid or " padding ": what is cut off the output"),         \
      option_as<axes_as<axes, 0>, &ConvolutionOptions::output_padding>(                 \
          ParamType::integers, "output_padding", "0", between(0, 65536),                \
          "more elements at the end of each axis; less than the stride"),               \
      dilation_option<axes>(), groups_option("channel groups"), bias_option(),          \
      kernel_initializer_option("initial kernel (" layout " x filters / groups x in)"), \
      bias_initializer_option(),

constexpr ParamSpec kTable2[] = {LOCKSTEP_TRANSPOSED_OPTIONS(2, "window: one number or [height, width]",
                                                             "[top, bottom, left, right]", "height x width")};
constexpr ParamSpec kTable3[] = {
    LOCKSTEP_TRANSPOSED_OPTIONS(3, "window: one number or [depth, height, width]",
                                "[front, back, top, bottom, left, right]", "depth x height x width")};
#undef LOCKSTEP_TRANSPOSED_OPTIONS
// clang-format on

/// The data gradient of a convolution from `filters` channels to the input's channels. The kernel is that of
/// the convolution: window x (filters / groups) x channels.
class TransposedConvolution final : public ConvolutionLayer {
 public:
  TransposedConvolution(std::string name, const char* kind, const ConvolutionOptions& o, int axes)
      : ConvolutionLayer(std::move(name), kind, o, axes), output_padding_(o.output_padding) {}

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    in_channels_ = check_input(inputs);
    axes_ = transposed_window_axes(inputs[0], windows_, output_padding_, name());
    output_ = spatial_shape({axes_[0].in, axes_[1].in, axes_[2].in}, axes_count_, filters_);
    flops_ = 2.0 * static_cast<double>(inputs[0].num_elements()) *
             static_cast<double>(kernel_shape().num_elements() / in_channels_);
    return {output_};
  }

 protected:
  Shape kernel_shape() const override { return kernel_of(filters_ / groups_, in_channels_); }
  std::unique_ptr<LinearPrimitive> make_primitive(const PrepareContext& context,
                                                  std::int64_t n) const override {
    ConvolutionSpec spec = spec_of(axes_, context);
    spec.n = n;
    spec.in_c = filters_;
    spec.out_c = in_channels_;
    spec.bias = bias_;
    spec.relu = relu_;
    return make_transposed_convolution(context.kernels, spec, context.lanes);
  }

 private:
  std::vector<std::int64_t> output_padding_;
};

template <int kAxes>
std::unique_ptr<Layer> make(std::string name, const Params& p) {
  return std::make_unique<TransposedConvolution>(std::move(name),
                                                 kAxes == 2 ? "conv2d_transpose" : "conv3d_transpose",
                                                 p.as<ConvolutionOptions>(), kAxes);
}

}  // namespace

extern const LayerEntry kConv2dTransposeLayer = {
    "conv2d_transpose", "two-dimensional transposed convolution, channels last", kTable2, make<2>};
extern const LayerEntry kConv3dTransposeLayer = {
    "conv3d_transpose", "three-dimensional transposed convolution, channels last", kTable3, make<3>};

}  // namespace lockstep
