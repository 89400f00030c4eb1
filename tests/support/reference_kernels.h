// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The expected results of the kernels: plain loops in double over std::vector<double>. Volumes are N,D,H,W,C;
// kernels are D,H,W,I,O (I: input channels of one group); matrices are rows x channels. Slow and obvious.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/activation.h"
#include "kernels/primitives.h"
#include "kernels/spatial.h"

namespace lockstep::reference {

using Values = std::vector<double>;

inline std::size_t at4(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t height,
                       std::int64_t width, std::int64_t channels) {
  return static_cast<std::size_t>(((n * height + h) * width + w) * channels + c);
}

inline Values zeros(std::int64_t count) { return Values(static_cast<std::size_t>(count), 0.0); }

inline std::size_t at5(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w, std::int64_t c,
                       std::int64_t depth, std::int64_t height, std::int64_t width, std::int64_t channels) {
  return at4(n * depth + d, h, w, c, height, width, channels);
}

/// Calls f(index in x, index in kernel, index in y) for every product of a convolution.
template <typename F>
void for_each_product(const ConvolutionSpec& s, const F& f) {
  const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t od = 0; od < s.out_d; ++od)
      for (std::int64_t oh = 0; oh < s.out_h; ++oh)
        for (std::int64_t ow = 0; ow < s.out_w; ++ow)
          for (std::int64_t kd = 0; kd < s.kernel_d; ++kd)
            for (std::int64_t kh = 0; kh < s.kernel_h; ++kh)
              for (std::int64_t kw = 0; kw < s.kernel_w; ++kw) {
                const std::int64_t id = od * s.stride_d - s.pad_front + kd * s.dilation_d;
                const std::int64_t ih = oh * s.stride_h - s.pad_top + kh * s.dilation_h;
                const std::int64_t iw = ow * s.stride_w - s.pad_left + kw * s.dilation_w;
                if (id < 0 || id >= s.in_d || ih < 0 || ih >= s.in_h || iw < 0 || iw >= s.in_w) continue;
                for (std::int64_t o = 0; o < s.out_c; ++o)
                  for (std::int64_t i = 0; i < group_in; ++i)
                    f(at5(n, id, ih, iw, o / group_out * group_in + i, s.in_d, s.in_h, s.in_w, s.in_c),
                      at5(kd, kh, kw, i, o, s.kernel_h, s.kernel_w, group_in, s.out_c),
                      at5(n, od, oh, ow, o, s.out_d, s.out_h, s.out_w, s.out_c));
              }
}

/// y = conv(x) (+ bias if not empty), then max(y, 0) if s.relu.
inline Values convolution(const ConvolutionSpec& s, const Values& x, const Values& weights,
                          const Values& bias) {
  Values y = zeros(s.n * s.out_positions() * s.out_c);
  for_each_product(s, [&](std::size_t in, std::size_t w, std::size_t out) { y[out] += x[in] * weights[w]; });
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!bias.empty()) y[i] += bias[i % bias.size()];
    if (s.relu) y[i] = std::max(y[i], 0.0);
  }
  return y;
}
/// dx from dy (already masked by relu).
inline Values convolution_backward_data(const ConvolutionSpec& s, const Values& dy, const Values& weights) {
  Values dx = zeros(s.n * s.in_positions() * s.in_c);
  for_each_product(s,
                   [&](std::size_t in, std::size_t w, std::size_t out) { dx[in] += dy[out] * weights[w]; });
  return dx;
}
inline Values convolution_backward_weights(const ConvolutionSpec& s, const Values& x, const Values& dy) {
  Values dw = zeros(s.kernel_rows() * s.out_c);
  for_each_product(s, [&](std::size_t in, std::size_t w, std::size_t out) { dw[w] += x[in] * dy[out]; });
  return dw;
}

/// c (m x n) = a b, where a is m x k and b is k x n. transposed_*: that operand is stored transposed.
inline Values matrix_product(std::int64_t m, std::int64_t n, std::int64_t k, const Values& a, const Values& b,
                             bool transposed_a = false, bool transposed_b = false) {
  Values c = zeros(m * n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l)
        c[static_cast<std::size_t>(i * n + j)] +=
            a[static_cast<std::size_t>(transposed_a ? l * m + i : i * k + l)] *
            b[static_cast<std::size_t>(transposed_b ? j * k + l : l * n + j)];
  return c;
}
/// y = x W (+ bias if not empty), then max(y, 0) if s.relu.
inline Values dense(const DenseSpec& s, const Values& x, const Values& weights, const Values& bias) {
  Values y = matrix_product(s.n, s.out, s.in, x, weights);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!bias.empty()) y[i] += bias[i % bias.size()];
    if (s.relu) y[i] = std::max(y[i], 0.0);
  }
  return y;
}
inline Values dense_backward_data(const DenseSpec& s, const Values& dy, const Values& weights) {
  return matrix_product(s.n, s.in, s.out, dy, weights, false, true);
}
inline Values dense_backward_weights(const DenseSpec& s, const Values& x, const Values& dy) {
  return matrix_product(s.in, s.out, s.n, x, dy, true, false);
}

/// One output position of a pooling.
struct Output {
  std::int64_t n, d, h, w, c;
};
/// Calls f(index in x) for the positions of one window that are inside the volume, in order.
template <typename F>
void for_each_in_window(const PoolSpec& s, const Output& o, const F& f) {
  for (std::int64_t kd = 0; kd < s.window_d; ++kd)
    for (std::int64_t kh = 0; kh < s.window_h; ++kh)
      for (std::int64_t kw = 0; kw < s.window_w; ++kw) {
        const std::int64_t id = o.d * s.stride_d - s.pad_front + kd, ih = o.h * s.stride_h - s.pad_top + kh,
                           iw = o.w * s.stride_w - s.pad_left + kw;
        if (id >= 0 && id < s.in_d && ih >= 0 && ih < s.in_h && iw >= 0 && iw < s.in_w)
          f(at5(o.n, id, ih, iw, o.c, s.in_d, s.in_h, s.in_w, s.channels));
      }
}
/// Calls f(output, index in y) for every output.
template <typename F>
void for_each_output(const PoolSpec& s, const F& f) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t od = 0; od < s.out_d; ++od)
      for (std::int64_t oh = 0; oh < s.out_h; ++oh)
        for (std::int64_t ow = 0; ow < s.out_w; ++ow)
          for (std::int64_t c = 0; c < s.channels; ++c)
            f(Output{n, od, oh, ow, c}, at5(n, od, oh, ow, c, s.out_d, s.out_h, s.out_w, s.channels));
}
inline Values pool(const PoolSpec& s, const Values& x) {
  Values y = zeros(s.n * s.out_d * s.out_h * s.out_w * s.channels);
  for_each_output(s, [&](const Output& o, std::size_t out) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0.0, count = 0.0;
    for_each_in_window(s, o, [&](std::size_t in) {
      largest = std::max(largest, x[in]);
      sum += x[in];
      count += 1.0;
    });
    y[out] = s.kind == PoolKind::max ? largest : sum / count;
  });
  return y;
}
/// The gradient of a maximum goes to the first position that has the maximum.
inline Values pool_backward(const PoolSpec& s, const Values& x, const Values& dy) {
  Values dx = zeros(s.n * s.in_d * s.in_h * s.in_w * s.channels);
  for_each_output(s, [&](const Output& o, std::size_t out) {
    std::vector<std::size_t> window;
    for_each_in_window(s, o, [&](std::size_t in) { window.push_back(in); });
    if (s.kind == PoolKind::max) {
      dx[*std::max_element(window.begin(), window.end(), [&](auto a, auto b) { return x[a] < x[b]; })] +=
          dy[out];
    } else {
      for (std::size_t in : window) dx[in] += dy[out] / static_cast<double>(window.size());
    }
  });
  return dx;
}

/// Pads the volume with `value`.
inline Values pad(const MarginSpec& s, const Values& inner, double value) {
  // The inner element of an outer one; -1: none.
  const auto source = [&](int axis, std::int64_t o) {
    const std::int64_t at = o - s.before[axis], extent = s.inner[axis];
    return s.circular[axis] ? (at + extent) % extent : at < extent ? at : -1;
  };
  Values y;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t d = 0; d < s.before[0] + s.inner[0] + s.after[0]; ++d)
      for (std::int64_t h = 0; h < s.before[1] + s.inner[1] + s.after[1]; ++h)
        for (std::int64_t w = 0; w < s.before[2] + s.inner[2] + s.after[2]; ++w)
          for (std::int64_t c = 0; c < s.channels; ++c) {
            const std::int64_t from[] = {source(0, d), source(1, h), source(2, w)};
            y.push_back(from[0] < 0 || from[1] < 0 || from[2] < 0
                            ? value
                            : inner[at5(n, from[0], from[1], from[2], c, s.inner[0], s.inner[1], s.inner[2],
                                        s.channels)]);
          }
  return y;
}

/// The value at position `place` of an axis, interpolated from the neighbouring elements.
inline double between(const std::function<double(std::int64_t)>& element, double place, std::int64_t count) {
  place = std::min(std::max(place, 0.0), static_cast<double>(count - 1));
  const auto below = static_cast<std::int64_t>(std::floor(place));
  const double share = place - static_cast<double>(below);
  return share == 0.0 ? element(below) : (1 - share) * element(below) + share * element(below + 1);
}
inline Values upsample(const UpsampleSpec& s, const Values& x, bool bilinear) {
  const std::int64_t od = s.in[0] * s.factor[0], oh = s.in[1] * s.factor[1], ow = s.in[2] * s.factor[2];
  Values y;
  const auto place = [&](std::int64_t o, int axis) {
    const double in = static_cast<double>(s.in[axis]), factor = static_cast<double>(s.factor[axis]);
    if (!s.align_corners) return (static_cast<double>(o) + 0.5) / factor - 0.5;
    return in * factor > 1 ? static_cast<double>(o) * (in - 1) / (in * factor - 1) : 0.0;
  };
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t d = 0; d < od; ++d)
      for (std::int64_t h = 0; h < oh; ++h)
        for (std::int64_t w = 0; w < ow; ++w)
          for (std::int64_t c = 0; c < s.channels; ++c) {
            const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
              return x[at5(n, i, j, k, c, s.in[0], s.in[1], s.in[2], s.channels)];
            };
            if (!bilinear) {
              y.push_back(at(d / s.factor[0], h / s.factor[1], w / s.factor[2]));
              continue;
            }
            const auto row = [&](std::int64_t j) {
              return between([&](std::int64_t k) { return at(0, j, k); }, place(w, 2), s.in[2]);
            };
            y.push_back(between(row, place(h, 1), s.in[1]));
          }
  return y;
}

/// Mean and sum of squared deviations per channel.
struct Moments {
  Values mean, m2;
};
inline Moments moments(std::int64_t rows, std::int64_t channels, const Values& x) {
  Moments result{zeros(channels), zeros(channels)};
  const std::size_t width = static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < x.size(); ++i) result.mean[i % width] += x[i] / static_cast<double>(rows);
  for (std::size_t i = 0; i < x.size(); ++i)
    result.m2[i % width] += std::pow(x[i] - result.mean[i % width], 2);
  return result;
}
/// Batch normalisation in training: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta.
inline Values batch_norm(std::int64_t rows, std::int64_t channels, const Values& x, const Values& gamma,
                         const Values& beta, double epsilon) {
  const Moments m = moments(rows, channels, x);
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % static_cast<std::size_t>(channels);
    y[i] = (x[i] - m.mean[c]) / std::sqrt(m.m2[c] / static_cast<double>(rows) + epsilon) * gamma[c] + beta[c];
  }
  return y;
}
/// The gradient of batch_norm (Ioffe and Szegedy 2015, section 3).
struct BatchNormGradients {
  Values dx, dgamma, dbeta;
};
inline BatchNormGradients batch_norm_backward(std::int64_t rows, std::int64_t channels, const Values& x,
                                              const Values& gamma, const Values& dy, double epsilon) {
  const Moments m = moments(rows, channels, x);
  const std::size_t width = static_cast<std::size_t>(channels);
  const double count = static_cast<double>(rows);
  BatchNormGradients g{Values(x.size()), zeros(channels), zeros(channels)};
  Values inverse(width);
  for (std::size_t c = 0; c < width; ++c) inverse[c] = 1.0 / std::sqrt(m.m2[c] / count + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % width;
    g.dbeta[c] += dy[i];
    g.dgamma[c] += dy[i] * (x[i] - m.mean[c]) * inverse[c];
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % width;
    const double normal = (x[i] - m.mean[c]) * inverse[c];
    g.dx[i] = gamma[c] * inverse[c] * (dy[i] - g.dbeta[c] / count - normal * g.dgamma[c] / count);
  }
  return g;
}

inline Values softmax(std::int64_t rows, std::int64_t channels, const Values& x) {
  Values y(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto first = static_cast<std::size_t>(r * channels),
               last = static_cast<std::size_t>((r + 1) * channels);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (std::size_t i = first; i < last; ++i) largest = std::max(largest, x[i]);
    for (std::size_t i = first; i < last; ++i) sum += std::exp(x[i] - largest);
    for (std::size_t i = first; i < last; ++i) y[i] = std::exp(x[i] - largest) / sum;
  }
  return y;
}

/// The activations of ActivationKind, in forms without cancellation.
inline double activation(Activation activation, double x) {
  const auto alpha = static_cast<double>(activation.alpha), beta = static_cast<double>(activation.beta);
  switch (activation.kind) {
    case ActivationKind::leaky_relu:
      return x > 0 ? x : alpha * x;
    case ActivationKind::relu6:
      return std::min(std::max(x, 0.0), 6.0);
    case ActivationKind::elu:
      return (x > 0 ? x : alpha * std::expm1(x)) * beta;
    case ActivationKind::gelu_tanh:  // 1 + tanh(u) = 2 / (1 + exp(-2 u))
      return x / (1.0 + std::exp(-2.0 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case ActivationKind::gelu_erf:
      return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
    case ActivationKind::silu:
      return x / (1.0 + std::exp(-x));
    case ActivationKind::tanh:
      return std::tanh(x * beta) * alpha;
    case ActivationKind::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case ActivationKind::softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// The derivatives of the activations.
inline double activation_derivative(Activation activation, double x) {
  const auto alpha = static_cast<double>(activation.alpha), beta = static_cast<double>(activation.beta);
  const auto sigmoid = [](double u) { return 1.0 / (1.0 + std::exp(-u)); };
  const auto sigmoid_slope = [](double u) {
    const double e = std::exp(-std::abs(u));
    return e / ((1.0 + e) * (1.0 + e));
  };
  switch (activation.kind) {
    case ActivationKind::leaky_relu:
      return x > 0 ? 1.0 : alpha;
    case ActivationKind::relu6:
      return x > 0 && x < 6 ? 1.0 : 0.0;
    case ActivationKind::elu:
      return (x > 0 ? 1.0 : alpha * std::exp(x)) * beta;
    case ActivationKind::gelu_tanh: {
      const double factor = 2.0 * 0.79788456080286535588, u = factor * (x + 0.044715 * x * x * x);
      const double slope = sigmoid_slope(u);
      return sigmoid(u) + (slope == 0 ? 0.0 : x * slope * factor * (1.0 + 3.0 * 0.044715 * x * x));
    }
    case ActivationKind::gelu_erf:
      return 0.5 * std::erfc(-x * 0.70710678118654752440) +
             x * 0.39894228040143267794 * std::exp(-0.5 * x * x);
    case ActivationKind::silu:
      return sigmoid(x) + x * sigmoid_slope(x);
    case ActivationKind::tanh:
      return 4.0 * sigmoid_slope(2.0 * x * beta) * alpha * beta;
    case ActivationKind::sigmoid:
      return sigmoid_slope(x);
    case ActivationKind::softplus:
      return sigmoid(x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace lockstep::reference
