// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// l2_normalize: divides by the length along the last axis.
#include "config/option.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct L2NormalizeOptions {
  double epsilon = 0;
};
constexpr ParamSpec kTable[] = {option<&L2NormalizeOptions::epsilon>("epsilon", "1e-12", above(0).up_to(1e6),
                                                                     "lower bound of the sum of squares")};

/// y = x / sqrt(max(sum of x^2, epsilon)) along the last axis.
class L2Normalize final : public Layer {
 public:
  using Options = L2NormalizeOptions;
  L2Normalize(std::string name, const Options& o) : Layer(std::move(name)), epsilon_(o.epsilon) {}
  LayerTraits traits() const override {
    return {.kind = "l2_normalize",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .backward_reads_input = false,
            .backward_reads_output = true};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config, "layer {}: l2_normalize takes one input, not {}",
                     name(), inputs.size());
    channels_ = inputs[0].last();
    rows_ = inputs[0].num_elements() / channels_;
    return {inputs[0]};
  }
  LayerMemory prepare(const PrepareContext& context) override {
    if (!context.training) return {};
    return {.saved_bytes = static_cast<std::size_t>(context.max_samples() * rows_) * 2 * sizeof(float)};
  }
  void forward(const Pass& pass) override {
    pass.kernels.group_norm.l2_normalize(pass.lane, pass.n * rows_, channels_, pass.inputs[0], epsilon_,
                                         static_cast<float*>(pass.saved), pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.group_norm.l2_normalize_backward(pass.lane, pass.n * rows_, channels_, pass.outputs[0],
                                                    pass.dy[0], static_cast<const float*>(pass.saved),
                                                    pass.dx[0]);
  }

 private:
  double epsilon_;
  std::int64_t rows_ = 0, channels_ = 0;
};

}  // namespace

extern const LayerEntry kL2NormalizeLayer = {"l2_normalize",
                                             "x / sqrt(max(sum of x^2, epsilon)) along the last axis", kTable,
                                             make_layer<L2Normalize>};

}  // namespace lockstep
