// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations on a GPU.
#include "kernels/activation.h"

#include "kernels/cuda_vector.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

// Functions of e = exp(-|x|), from which both branches of a symmetric function follow without overflow.
inline __device__ float sigmoid_of(float x, float e) { return (x >= 0.0F ? 1.0F : e) / (1.0F + e); }
inline __device__ float sigmoid(float x) { return sigmoid_of(x, expf(-fabsf(x))); }
/// sigmoid(x) (1 - sigmoid(x)).
inline __device__ float sigmoid_slope(float e) { return e / ((1.0F + e) * (1.0F + e)); }

constexpr float kGeluFactor = 0.79788456080286535588F;     // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;                    // Hendrycks and Gimpel 2016
constexpr float kNormalDensity = 0.39894228040143267794F;  // 1 / sqrt(2 pi)
/// Limits x to 30 in magnitude. Beyond, the tanh form is x or 0 in float32, and its cubic could overflow.
inline __device__ float bounded(float x) { return x > 30.0F ? 30.0F : x < -30.0F ? -30.0F : x; }

/// 1 / x within one unit in the last place, in one instruction.
inline __device__ float quick_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0F / x;
#endif
}

/// The standard normal distribution: the probability of x or less, and exp(-x^2 / 2). With a = |x| and q =
/// (a - 3) / (a + 3), the probability of -a is exp(-a^2 / 2) p(q) / (a + 3). The polynomial p is a minimax
/// fit of its relative error, 2^-24, for a from 0 to 15; the probability's is below 5 * 2^-24. Beyond 15 it
/// is 0 in float32. With fused multiply-adds, whose results are the same everywhere.
struct NormalDistribution {
  float below, exponential;
  explicit __device__ NormalDistribution(float x) {
    constexpr float kP[] = {-0.000259309949F, -0.000892530719F, 0.00107323937F, 0.00691616954F, -0.010480145F,
                            -0.0472544655F,   0.230019435F,     -0.509332359F,  0.729083657F};
    const float magnitude = fabsf(x), a = magnitude > 15.0F ? 15.0F : magnitude;  // NaN stays NaN
    const float scale = quick_reciprocal(a + 3.0F), q = (a - 3.0F) * scale;
    float p = kP[0];
    for (int i = 1; i < 9; ++i) p = fmaf(p, q, kP[i]);
    const float half = -0.5F * a, square = half * a;
    exponential = expf(square);
    exponential = fmaf(exponential, fmaf(half, a, -square), exponential);  // what the square's rounding lost
    const float tail = p * scale * exponential;
    below = x < 0.0F ? tail : 1.0F - tail;
  }
};

/// f(x) and its derivative.
template <ActivationKind kKind>
struct Function {
  float alpha, beta;

  __device__ float value(float x) const {
    switch (kKind) {
      case ActivationKind::leaky_relu:
        return x > 0.0F ? x : alpha * x;
      case ActivationKind::relu6:
        return x < 0.0F ? 0.0F : x > 6.0F ? 6.0F : x;
      case ActivationKind::elu:
        return (x > 0.0F ? x : expm1f(x) * alpha) * beta;
      case ActivationKind::gelu_tanh: {  // 1 + tanh(u) = 2 sigmoid(2 u)
        const float b = bounded(x);
        return x * sigmoid(2.0F * kGeluFactor * (b + kGeluCubic * b * b * b));
      }
      case ActivationKind::gelu_erf:
        return x * NormalDistribution(x).below;
      case ActivationKind::silu:
        return x * sigmoid(x);
      case ActivationKind::tanh:
        return tanhf(x * beta) * alpha;
      case ActivationKind::sigmoid:
        return sigmoid(x);
      case ActivationKind::softplus:
        return (x < 0.0F ? 0.0F : x) + log1pf(expf(-fabsf(x)));
    }
    return x;
  }

  __device__ float derivative(float x) const {
    switch (kKind) {
      case ActivationKind::leaky_relu:
        return x > 0.0F ? 1.0F : alpha;
      case ActivationKind::relu6:
        return x > 0.0F && x < 6.0F ? 1.0F : 0.0F;
      case ActivationKind::elu:
        return (x > 0.0F ? 1.0F : expf(x) * alpha) * beta;
      case ActivationKind::gelu_tanh: {
        const float b = bounded(x), u = 2.0F * kGeluFactor * (b + kGeluCubic * b * b * b);
        const float e = expf(-fabsf(u)), slope = 2.0F * kGeluFactor * (1.0F + 3.0F * kGeluCubic * b * b);
        return sigmoid_of(u, e) + b * sigmoid_slope(e) * slope;
      }
      case ActivationKind::gelu_erf: {
        const NormalDistribution normal(x);
        return normal.below + x * (kNormalDensity * normal.exponential);
      }
      case ActivationKind::silu: {
        const float e = expf(-fabsf(x));
        return sigmoid_of(x, e) + x * sigmoid_slope(e);
      }
      case ActivationKind::tanh:  // 1 - tanh^2(u) = 4 sigmoid(2 u) (1 - sigmoid(2 u))
        return sigmoid_slope(expf(-2.0F * fabsf(x * beta))) * (4.0F * alpha * beta);
      case ActivationKind::sigmoid:
        return sigmoid_slope(expf(-fabsf(x)));
      case ActivationKind::softplus:
        return sigmoid(x);
    }
    return 1.0F;
  }
};

template <ActivationKind kKind, typename T>
struct Forward {
  Function<kKind> function;
  const T* x;
  T* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] = function.value(value.at[k]);
    V::store(y + i, value);
  }
};

template <ActivationKind kKind, typename T>
struct Backward {
  Function<kKind> function;
  const T* dy;
  const T* x;
  T* dx;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto gradient = V::load(dy + i);
    const auto input = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) gradient.at[k] *= function.derivative(input.at[k]);
    V::store(dx + i, gradient);
  }
};

/// Calls f with the function of the activation's kind.
template <typename F>
void with_function(Activation activation, const F& f) {
  switch (activation.kind) {
    case ActivationKind::leaky_relu:
      return f(Function<ActivationKind::leaky_relu>{activation.alpha, activation.beta});
    case ActivationKind::relu6:
      return f(Function<ActivationKind::relu6>{activation.alpha, activation.beta});
    case ActivationKind::elu:
      return f(Function<ActivationKind::elu>{activation.alpha, activation.beta});
    case ActivationKind::gelu_tanh:
      return f(Function<ActivationKind::gelu_tanh>{activation.alpha, activation.beta});
    case ActivationKind::gelu_erf:
      return f(Function<ActivationKind::gelu_erf>{activation.alpha, activation.beta});
    case ActivationKind::silu:
      return f(Function<ActivationKind::silu>{activation.alpha, activation.beta});
    case ActivationKind::tanh:
      return f(Function<ActivationKind::tanh>{activation.alpha, activation.beta});
    case ActivationKind::sigmoid:
      return f(Function<ActivationKind::sigmoid>{activation.alpha, activation.beta});
    case ActivationKind::softplus:
      return f(Function<ActivationKind::softplus>{activation.alpha, activation.beta});
  }
}

class Activations final : public ActivationKernels {
 public:
  void forward(const Lane& lane, Activation activation, std::int64_t count, ConstData x,
               Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      with_function(activation, [&]<ActivationKind kKind>(Function<kKind> function) {
        for_each_element<T>(lane, "activation", count, wide_aligned(x, y),
                            Forward<kKind, T>{function, x.as<T>(), y.as<T>()});
      });
    });
  }
  void backward(const Lane& lane, Activation activation, std::int64_t count, ConstData dy, ConstData x,
                Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      with_function(activation, [&]<ActivationKind kKind>(Function<kKind> function) {
        for_each_element<T>(lane, "activation_backward", count, wide_aligned(dy, x, dx),
                            Backward<kKind, T>{function, dy.as<T>(), x.as<T>(), dx.as<T>()});
      });
    });
  }
};

}  // namespace

const ActivationKernels& activation_kernels() {
  static const Activations kernels;
  return kernels;
}

}  // namespace lockstep::cuda
