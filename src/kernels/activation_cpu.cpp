// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations on the CPU, per instruction-set level (isa.h).
#include "kernels/activation.h"

#include "kernels/isa.h"
#include "kernels/vec_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

using L = Lanes<Vec>;

/// exp(-|x|), from which both branches of a symmetric function follow without overflow.
inline Vec decay(Vec x) { return exp_of_nonpositive(-absolute(x)); }
inline Vec sigmoid_of(Vec x, Vec e) {
  const Vec one = Vec{} + 1.0F;
  return (x >= 0.0F ? one : e) / (e + 1.0F);
}
inline Vec sigmoid(Vec x) { return sigmoid_of(x, decay(x)); }
/// sigmoid(x) (1 - sigmoid(x)).
inline Vec sigmoid_slope(Vec e) { return e / ((e + 1.0F) * (e + 1.0F)); }

constexpr float kGeluFactor = 0.79788456080286535588F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;                 // Hendrycks and Gimpel 2016
constexpr float kNormalDensity = 0.39894228040143267794F;
/// Limits x to 30 in magnitude. Beyond, the tanh form is x or 0 in float32, and its cubic could overflow.
inline Vec bounded(Vec x) {
  const Vec limit = Vec{} + 30.0F;
  return x > limit ? limit : x < -limit ? -limit : x;
}

template <ActivationKind kKind>
inline Vec value(Vec x, Activation a) {
  const Vec zero = {};
  if constexpr (kKind == ActivationKind::leaky_relu) return x > 0.0F ? x : x * a.alpha;
  if constexpr (kKind == ActivationKind::relu6) {
    const Vec low = x < 0.0F ? zero : x;
    return low > 6.0F ? zero + 6.0F : low;
  }
  if constexpr (kKind == ActivationKind::elu)
    return (x > 0.0F ? x : expm1_of_nonpositive(x > 0.0F ? zero : x) * a.alpha) * a.beta;
  if constexpr (kKind == ActivationKind::gelu_tanh) {  // 1 + tanh(u) = 2 sigmoid(2 u)
    const Vec b = bounded(x);
    return x * sigmoid((b + b * b * b * kGeluCubic) * (2.0F * kGeluFactor));
  }
  if constexpr (kKind == ActivationKind::gelu_erf) {
    const Vec magnitude = absolute(x), tail = normal_tail(magnitude, gaussian(magnitude));
    return x * (x > 0.0F ? 1.0F - tail : tail);
  }
  if constexpr (kKind == ActivationKind::silu) return x * sigmoid(x);
  if constexpr (kKind == ActivationKind::tanh) {
    const Vec u = x * a.beta, m = expm1_of_nonpositive(absolute(u) * -2.0F), t = m / (m + 2.0F);
    return (u > 0.0F ? -t : t) * a.alpha;
  }
  if constexpr (kKind == ActivationKind::sigmoid) return sigmoid(x);
  if constexpr (kKind == ActivationKind::softplus) return (x < 0.0F ? zero : x) + log1p_of_fraction(decay(x));
}

template <ActivationKind kKind>
inline Vec derivative(Vec x, Activation a) {
  const Vec zero = {}, one = zero + 1.0F;
  if constexpr (kKind == ActivationKind::leaky_relu) return x > 0.0F ? one : zero + a.alpha;
  if constexpr (kKind == ActivationKind::relu6) {
    const Vec passes = x > 0.0F ? one : zero;
    return x >= 6.0F ? zero : passes;
  }
  if constexpr (kKind == ActivationKind::elu)
    return (x > 0.0F ? one : exp_of_nonpositive(x > 0.0F ? zero : x) * a.alpha) * a.beta;
  if constexpr (kKind == ActivationKind::gelu_tanh) {
    const Vec b = bounded(x), u = (b + b * b * b * kGeluCubic) * (2.0F * kGeluFactor), e = decay(u);
    const Vec slope = (b * b * (3.0F * kGeluCubic) + 1.0F) * (2.0F * kGeluFactor);
    return sigmoid_of(u, e) + b * sigmoid_slope(e) * slope;
  }
  if constexpr (kKind == ActivationKind::gelu_erf) {
    const Vec magnitude = absolute(x), density = gaussian(magnitude), tail = normal_tail(magnitude, density);
    return (x > 0.0F ? 1.0F - tail : tail) + x * density * kNormalDensity;
  }
  if constexpr (kKind == ActivationKind::silu) {
    const Vec e = decay(x);
    return sigmoid_of(x, e) + x * sigmoid_slope(e);
  }
  if constexpr (kKind == ActivationKind::tanh)  // 1 - tanh^2(u) = 4 sigmoid(2 u) (1 - sigmoid(2 u))
    return sigmoid_slope(exp_of_nonpositive(absolute(x * a.beta) * -2.0F)) * (4.0F * a.alpha * a.beta);
  if constexpr (kKind == ActivationKind::sigmoid) return sigmoid_slope(decay(x));
  if constexpr (kKind == ActivationKind::softplus) return sigmoid(x);
}

/// Calls body(input address, output address) for whole registers. The last, partial register goes through a
/// copy.
template <typename Body>
inline void for_each_register(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, kLanes);
  if (i < count) body(i, static_cast<int>(count - i));
}
template <typename T>
inline Vec load(const T* from, int count) {
  if (count == kLanes) return L::load(from);
  float padded[kLanes] = {};
  for (int i = 0; i < count; ++i) padded[i] = to_float(from[i]);
  return L::load(padded);
}
template <typename T>
inline void store(T* to, Vec v, int count) {
  if (count == kLanes) return L::store(to, v);
  float padded[kLanes];
  L::store(padded, v);
  for (int i = 0; i < count; ++i) to[i] = from_float<T>(padded[i]);
}

/// The kind as a type.
template <ActivationKind kValue>
struct KindOf {
  static constexpr ActivationKind kind = kValue;
};
template <typename F>
inline void with_kind(ActivationKind kind, const F& f) {
  switch (kind) {
    case ActivationKind::leaky_relu:
      return f(KindOf<ActivationKind::leaky_relu>{});
    case ActivationKind::relu6:
      return f(KindOf<ActivationKind::relu6>{});
    case ActivationKind::elu:
      return f(KindOf<ActivationKind::elu>{});
    case ActivationKind::gelu_tanh:
      return f(KindOf<ActivationKind::gelu_tanh>{});
    case ActivationKind::gelu_erf:
      return f(KindOf<ActivationKind::gelu_erf>{});
    case ActivationKind::silu:
      return f(KindOf<ActivationKind::silu>{});
    case ActivationKind::tanh:
      return f(KindOf<ActivationKind::tanh>{});
    case ActivationKind::sigmoid:
      return f(KindOf<ActivationKind::sigmoid>{});
    case ActivationKind::softplus:
      return f(KindOf<ActivationKind::softplus>{});
  }
}

class Activations final : public ActivationKernels {
 public:
  void forward(const Lane&, Activation activation, std::int64_t count, ConstData x, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      const T* const from = x.as<T>();
      T* const to = y.as<T>();
      with_kind(activation.kind, [&]<typename K>(K) {
        for_each_register(count, [&](std::int64_t at, int width) {
          store(to + at, value<K::kind>(load(from + at, width), activation), width);
        });
      });
    });
  }
  void backward(const Lane&, Activation activation, std::int64_t count, ConstData dy, ConstData x,
                Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      const T *const gradient = dy.as<T>(), *const input = x.as<T>();
      T* const to = dx.as<T>();
      with_kind(activation.kind, [&]<typename K>(K) {
        for_each_register(count, [&](std::int64_t at, int width) {
          const Vec slope = derivative<K::kind>(load(input + at, width), activation);
          store(to + at, load(gradient + at, width) * slope, width);
        });
      });
    });
  }
};

}  // namespace

const ActivationKernels& activation_kernels() {
  static const Activations kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
