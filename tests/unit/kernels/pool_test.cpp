// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling and activation primitives of cpu_kernels(), at the level that LOCKSTEP_ISA allows.
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "kernels/kernel_table.h"
#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

PoolSpec pool(PoolKind kind, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t channels,
              std::int64_t window, std::int64_t stride, std::int64_t pad_front, std::int64_t pad_back) {
  PoolSpec s;
  s.kind = kind;
  s.n = n, s.in_h = h, s.in_w = w, s.channels = channels;
  s.window_h = s.window_w = window;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = pad_front;
  s.pad_bottom = s.pad_right = pad_back;
  s.out_h = (h + pad_front + pad_back - window) / stride + 1;
  s.out_w = (w + pad_front + pad_back - window) / stride + 1;
  return s;
}

/// A volume with its own window and padding along the depth.
PoolSpec volume(PoolKind kind, std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w,
                std::int64_t channels, std::int64_t window, std::int64_t stride, std::int64_t pad) {
  PoolSpec s = pool(kind, n, h, w, channels, window, stride, pad, pad);
  s.in_d = d;
  s.window_d = window + 1, s.stride_d = stride, s.pad_back = pad;
  s.out_d = (d + pad - window - 1) / stride + 1;
  return s;
}

std::vector<PoolSpec> pool_specs(PoolKind kind) {
  return {pool(kind, 2, 8, 8, 16, 2, 2, 0, 0),   pool(kind, 1, 7, 9, 3, 3, 2, 1, 1),
          pool(kind, 3, 6, 6, 1, 2, 2, 0, 0),    pool(kind, 2, 5, 5, 33, 3, 1, 1, 1),
          pool(kind, 1, 7, 7, 64, 3, 2, 0, 1),   pool(kind, 1, 4, 4, 10, 4, 4, 0, 0),
          pool(kind, 2, 300, 2, 5, 2, 2, 0, 0),  pool(kind, 1, 40, 40, 4, 20, 20, 0, 0),
          volume(kind, 2, 5, 4, 6, 16, 2, 2, 0), volume(kind, 1, 7, 5, 5, 5, 3, 2, 1),
          volume(kind, 2, 4, 1, 1, 20, 1, 1, 0)};
}

TEST(Pool, ForwardAndBackwardMatchTheReference) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const PoolSpec& s : pool_specs(kind)) {
      const std::string what =
          fmt::format("{} {}x{}x{}x{}x{} window {}", kind == PoolKind::max ? "max" : "average", s.n, s.in_d,
                      s.in_h, s.in_w, s.channels, s.window_h);
      const std::int64_t xs = s.n * s.in_d * s.in_h * s.in_w * s.channels,
                         ys = s.n * s.out_d * s.out_h * s.out_w * s.channels;
      const Values x = random_values(xs, 1), dy = random_values(ys, 2);
      const auto primitive = cpu_kernels().make.pool(s, 1);
      const TestLane lane(primitive->scratch_bytes());
      const Buffer saved(cpu_device(), primitive->saved_bytes());
      const Floats x_data(x), dy_data(dy);
      Floats y(ys), dx(xs);
      primitive->forward(lane, x_data.data(), y.data(), saved.data());
      primitive->backward(lane, dy_data.data(), saved.data(), dx.data());
      const double window = static_cast<double>(s.window_d * s.window_h * s.window_w);
      const double error = kind == PoolKind::max ? 0.0 : (window + 2) * kRounding;
      expect_close(y.values(), reference::pool(s, x), reference::pool(s, absolute(x)), error, 0.0,
                   "y " + what);
      // An element of dx sums the gradients of the windows that contain it.
      expect_close(dx.values(), reference::pool_backward(s, x, dy), Values(x.size(), 1.0),
                   window * 4 * kRounding, 0.0, "dx " + what);
      PoolSpec inference = s;
      inference.training = false;
      const auto forward_only = cpu_kernels().make.pool(inference, 1);
      EXPECT_EQ(forward_only->saved_bytes(), 0U);
      Floats again(ys);
      forward_only->forward(TestLane(forward_only->scratch_bytes()), x_data.data(), again.data(), nullptr);
      EXPECT_TRUE(same_bits(again, y)) << what;
      EXPECT_THROW(forward_only->backward(lane, dy_data.data(), nullptr, dx.data()), Error);
    }
}

TEST(Pool, NegativeWindowsNextToPadding) {
  const PoolSpec s = pool(PoolKind::max, 1, 4, 4, 16, 3, 1, 1, 1);
  const Floats x(Values(256, -5.0));
  Floats y(256);
  const auto primitive = cpu_kernels().make.pool(s, 1);
  const Buffer saved(cpu_device(), primitive->saved_bytes());
  primitive->forward(TestLane(primitive->scratch_bytes()), x.data(), y.data(), saved.data());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], -5.0F);
}

TEST(Pool, TheFirstOfEqualMaximaGetsTheGradient) {
  for (std::int64_t channels : {1, 16, 21})
    for (const PoolSpec& s : {pool(PoolKind::max, 1, 4, 4, channels, 2, 2, 0, 0),
                              pool(PoolKind::max, 1, 5, 5, channels, 3, 2, 1, 1)}) {
      const std::int64_t xs = s.in_h * s.in_w * channels, ys = s.out_h * s.out_w * channels;
      const Values x(static_cast<std::size_t>(xs), 1.5), dy(static_cast<std::size_t>(ys), 1.0);
      const Floats x_data(x), dy_data(dy);
      Floats y(ys), dx(xs);
      const auto primitive = cpu_kernels().make.pool(s, 1);
      const Buffer saved(cpu_device(), primitive->saved_bytes());
      primitive->forward(TestLane(), x_data.data(), y.data(), saved.data());
      primitive->backward(TestLane(), dy_data.data(), saved.data(), dx.data());
      expect_close(dx.values(), reference::pool_backward(s, x, dy), x, 0.0, 0.0, "ties");
    }
}

TEST(Pool, NanReachesTheOutput) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average})
    for (std::int64_t channels : {1, 16, 20})
      for (std::int64_t at = 0; at < 4; ++at) {  // each position of the first window
        const PoolSpec s = pool(kind, 1, 4, 4, channels, 2, 2, 0, 0);
        Floats x(random_values(16 * channels, 3));
        x[static_cast<std::size_t>((at / 2 * 4 + at % 2) * channels)] =
            std::numeric_limits<float>::quiet_NaN();
        Floats y(4 * channels);
        const auto primitive = cpu_kernels().make.pool(s, 1);
        const Buffer saved(cpu_device(), primitive->saved_bytes());
        primitive->forward(TestLane(primitive->scratch_bytes()), x.data(), y.data(), saved.data());
        EXPECT_TRUE(std::isnan(y[0])) << channels << " channels, position " << at << ": " << y[0];
      }
}

template <typename T>
void expect_those_of_float32(const PoolSpec& full, int shift) {
  PoolSpec half = full;
  half.dtype = dtype_of<T>;
  const std::string what = fmt::format("{} {} {}x{}x{}x{}x{} window {} shift {}", name_of(half.dtype),
                                       full.kind == PoolKind::max ? "max" : "average", full.n, full.in_d,
                                       full.in_h, full.in_w, full.channels, full.window_h, shift);
  const std::int64_t xs = full.n * full.in_d * full.in_h * full.in_w * full.channels,
                     ys = full.n * full.out_d * full.out_h * full.out_w * full.channels;
  Values numbers = random_values(xs, 1);
  for (double& value : numbers) value = std::round(value * 4.0);  // many ties
  numbers[numbers.size() / 2] = std::nan("");
  const Stored<T> x(numbers, shift), dy(random_values(ys, 2), shift);
  const Floats wide_x = x.widened(), wide_dy = dy.widened();
  const auto in_half = cpu_kernels().make.pool(half, 1), in_full = cpu_kernels().make.pool(full, 1);
  const Buffer saved(cpu_device(), in_half->saved_bytes()), wide_saved(cpu_device(), in_full->saved_bytes());
  const TestLane lane(in_half->scratch_bytes());
  Stored<T> y(ys, shift), dx(xs, shift);
  Floats wide_y(ys), wide_dx(xs);
  in_half->forward(lane, x.data(), y.data(), saved.data());
  in_half->backward(lane, dy.data(), saved.data(), dx.data());
  in_full->forward(lane, wide_x.data(), wide_y.data(), wide_saved.data());
  in_full->backward(lane, wide_dy.data(), wide_saved.data(), wide_dx.data());
  expect_rounded(y, wide_y, "y " + what);
  expect_rounded(dx, wide_dx, "dx " + what);
  EXPECT_THROW(in_half->forward(lane, wide_x.data(), wide_y.data(), saved.data()), Error);
  EXPECT_THROW(in_half->backward(lane, wide_dy.data(), saved.data(), wide_dx.data()), Error);
}

TEST(Pool, In16BitsIsFloat32RoundedOnce) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const PoolSpec& s : pool_specs(kind))
      for (int shift : {0, 1}) {
        expect_those_of_float32<BFloat16>(s, shift);
        expect_those_of_float32<Float16>(s, shift);
      }
}

TEST(PrimitiveLibrary, NamesVersionAndLevel) {
  EXPECT_EQ(primitive_library_version().rfind("oneDNN ", 0), 0U);
  EXPECT_NE(primitive_library_version().find('('), std::string::npos);
}

}  // namespace
}  // namespace lockstep
