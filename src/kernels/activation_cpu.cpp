// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations on the CPU by oneDNN's element-wise primitive.
#include "core/error.h"
#include "kernels/factory_cpu.h"
#include "kernels/onednn.h"

namespace lockstep {
namespace {

using onednn::Execution;

struct Algorithm {
  dnnl::algorithm algorithm;
  float alpha, beta;
};

Algorithm algorithm_of(ActivationKind kind, float alpha) {
  switch (kind) {
    case ActivationKind::leaky_relu:
      return {dnnl::algorithm::eltwise_relu, alpha, 0.0F};
    case ActivationKind::relu6:
      return {dnnl::algorithm::eltwise_clip, 0.0F, 6.0F};
    case ActivationKind::elu:
      return {dnnl::algorithm::eltwise_elu, alpha, 0.0F};
    case ActivationKind::gelu_tanh:
      return {dnnl::algorithm::eltwise_gelu_tanh, 0.0F, 0.0F};
    case ActivationKind::gelu_erf:
      return {dnnl::algorithm::eltwise_gelu_erf, 0.0F, 0.0F};
    case ActivationKind::silu:
      return {dnnl::algorithm::eltwise_swish, 1.0F, 0.0F};
    case ActivationKind::tanh:
      return {dnnl::algorithm::eltwise_tanh, 0.0F, 0.0F};
    case ActivationKind::sigmoid:
      return {dnnl::algorithm::eltwise_logistic, 0.0F, 0.0F};
    case ActivationKind::softplus:
      return {dnnl::algorithm::eltwise_soft_relu, 1.0F, 0.0F};
  }
  LOCKSTEP_CHECK(false, "activation kind {}", static_cast<int>(kind));
}

class CpuActivation final : public ActivationPrimitive {
 public:
  CpuActivation(ActivationKind kind, float alpha, std::int64_t count, bool training, int lanes)
      : training_(training) {
    LOCKSTEP_CHECK(count > 0, "count {}", count);
    const Algorithm chosen = algorithm_of(kind, alpha);
    onednn::create(fmt::format("an activation of {} elements", count), [&] {
      const onednn::ActivationDescs descs{chosen.algorithm, onednn::f32({count}, onednn::Tag::a),
                                          chosen.alpha, chosen.beta, training};
      const auto forward = onednn::activation_forward(descs, onednn::attributes());
      require_no_scratch(forward.scratchpad_desc());
      forward_ = Execution(dnnl::eltwise_forward(forward), "activation forward",
                           {{DNNL_ARG_SRC, descs.x}, {DNNL_ARG_DST, descs.x}}, lanes);
      if (!training) return 0;
      const auto backward = onednn::activation_backward(descs, onednn::attributes(), forward);
      require_no_scratch(backward.scratchpad_desc());
      backward_ = Execution(
          dnnl::eltwise_backward(backward), "activation backward",
          {{DNNL_ARG_SRC, descs.x}, {DNNL_ARG_DIFF_DST, descs.x}, {DNNL_ARG_DIFF_SRC, descs.x}}, lanes);
      return 0;
    });
  }

  void forward(const Lane& lane, const float* x, float* y) const override { forward_.run(lane, {x, y}); }
  void backward(const Lane& lane, const float* dy, const float* x, float* dx) const override {
    LOCKSTEP_CHECK(training_, "backward pass of a primitive made without training");
    backward_.run(lane, {x, dy, dx});
  }

 private:
  static void require_no_scratch(const onednn::Desc& scratchpad) {
    LOCKSTEP_CHECK(scratchpad.get_size() == 0, "an element-wise primitive wants {} bytes of scratch",
                   scratchpad.get_size());
  }

  bool training_;
  Execution forward_, backward_;
};

}  // namespace

std::unique_ptr<ActivationPrimitive> make_cpu_activation(ActivationKind kind, float alpha, std::int64_t count,
                                                         bool training, int lanes) {
  return std::make_unique<CpuActivation>(kind, alpha, count, training, lanes);
}

}  // namespace lockstep
