// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations on a GPU, in float32, in forms that lose no digits where the function is small. NaN stays NaN.
#include "kernels/cuda_vector.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

inline __device__ float sigmoid(float x) {  // exp of what is not positive: no overflow
  const float e = expf(-fabsf(x));
  return (x >= 0.0F ? 1.0F : e) / (1.0F + e);
}
constexpr float kGeluFactor = 0.79788456080286535588F,
                kGeluCubic = 0.044715F;  // sqrt(2 / pi); Hendrycks and Gimpel 2016
constexpr float kSqrtHalf = 0.70710678118654752440F, kNormalDensity = 0.39894228040143267794F;

/// f(x), and its derivative.
template <ActivationKind kKind>
struct Function {
  float alpha;

  __device__ float value(float x) const {
    switch (kKind) {
      case ActivationKind::leaky_relu:
        return x > 0.0F ? x : alpha * x;
      case ActivationKind::relu6:
        return x < 0.0F ? 0.0F : x > 6.0F ? 6.0F : x;
      case ActivationKind::elu:
        return x > 0.0F ? x : alpha * expm1f(x);
      case ActivationKind::gelu_tanh:  // 1 + tanh(u) = 2 sigmoid(2 u)
        return x * sigmoid(2.0F * kGeluFactor * (x + kGeluCubic * x * x * x));
      case ActivationKind::gelu_erf:
        return 0.5F * x * erfcf(-x * kSqrtHalf);
      case ActivationKind::silu:
        return x * sigmoid(x);
      case ActivationKind::tanh:
        return tanhf(x);
      case ActivationKind::sigmoid:
        return sigmoid(x);
      case ActivationKind::softplus:
        return (x > 0.0F ? x : 0.0F) + log1pf(expf(-fabsf(x)));
    }
    return x;
  }

  __device__ float derivative(float x) const {
    switch (kKind) {
      case ActivationKind::leaky_relu:
        return x > 0.0F ? 1.0F : alpha;
      case ActivationKind::relu6:
        return x > 0.0F && x <= 6.0F ? 1.0F : 0.0F;
      case ActivationKind::elu:
        return x > 0.0F ? 1.0F : alpha * expf(x);
      case ActivationKind::gelu_tanh: {
        const float s = sigmoid(2.0F * kGeluFactor * (x + kGeluCubic * x * x * x));
        const float slope = 2.0F * kGeluFactor * (1.0F + 3.0F * kGeluCubic * x * x);
        return s + x * s * (1.0F - s) * slope;
      }
      case ActivationKind::gelu_erf:
        return 0.5F * erfcf(-x * kSqrtHalf) + x * kNormalDensity * expf(-0.5F * x * x);
      case ActivationKind::silu: {
        const float s = sigmoid(x);
        return s + x * s * (1.0F - s);
      }
      case ActivationKind::tanh: {
        const float t = tanhf(x);
        return (1.0F - t) * (1.0F + t);
      }
      case ActivationKind::sigmoid: {
        const float s = sigmoid(x);
        return s * (1.0F - s);
      }
      case ActivationKind::softplus:
        return sigmoid(x);
    }
    return 1.0F;
  }
};

template <ActivationKind kKind>
struct Forward {
  Function<kKind> function;
  const float* x;
  float* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] = function.value(value.at[k]);
    V::store(y + i, value);
  }
};

template <ActivationKind kKind>
struct Backward {
  Function<kKind> function;
  const float* dy;
  const float* x;
  float* dx;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto gradient = V::load(dy + i);
    const auto input = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) gradient.at[k] *= function.derivative(input.at[k]);
    V::store(dx + i, gradient);
  }
};

template <ActivationKind kKind>
class CudaActivation final : public ActivationPrimitive {
 public:
  CudaActivation(float alpha, std::int64_t count, bool training)
      : function_{alpha}, count_(count), training_(training) {
    require(count > 0, "an activation of no elements");
  }
  void forward(const Lane& lane, const float* x, float* y) const override {
    for_each_element(lane, "activation", count_, wide_aligned(x, y), Forward<kKind>{function_, x, y});
  }
  void backward(const Lane& lane, const float* dy, const float* x, float* dx) const override {
    require(training_, "backward pass of a primitive made without training");
    for_each_element(lane, "activation_backward", count_, wide_aligned(dy, x, dx),
                     Backward<kKind>{function_, dy, x, dx});
  }

 private:
  Function<kKind> function_;
  std::int64_t count_;
  bool training_;
};

}  // namespace

std::unique_ptr<ActivationPrimitive> make_activation(ActivationKind kind, float alpha, std::int64_t count,
                                                     bool training) {
  switch (kind) {
    case ActivationKind::leaky_relu:
      return std::make_unique<CudaActivation<ActivationKind::leaky_relu>>(alpha, count, training);
    case ActivationKind::relu6:
      return std::make_unique<CudaActivation<ActivationKind::relu6>>(alpha, count, training);
    case ActivationKind::elu:
      return std::make_unique<CudaActivation<ActivationKind::elu>>(alpha, count, training);
    case ActivationKind::gelu_tanh:
      return std::make_unique<CudaActivation<ActivationKind::gelu_tanh>>(alpha, count, training);
    case ActivationKind::gelu_erf:
      return std::make_unique<CudaActivation<ActivationKind::gelu_erf>>(alpha, count, training);
    case ActivationKind::silu:
      return std::make_unique<CudaActivation<ActivationKind::silu>>(alpha, count, training);
    case ActivationKind::tanh:
      return std::make_unique<CudaActivation<ActivationKind::tanh>>(alpha, count, training);
    case ActivationKind::sigmoid:
      return std::make_unique<CudaActivation<ActivationKind::sigmoid>>(alpha, count, training);
    case ActivationKind::softplus:
      return std::make_unique<CudaActivation<ActivationKind::softplus>>(alpha, count, training);
  }
  require(false, "an unknown kind of activation");
  return nullptr;
}

}  // namespace lockstep::cuda
