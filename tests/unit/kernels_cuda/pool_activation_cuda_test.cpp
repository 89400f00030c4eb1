// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/kernels/activation_testing.h"
#include "unit/kernels_cuda/stored_cuda_testing.h"

namespace lockstep {
namespace {

class CudaPool : public GpuTest {};
class CudaActivation : public GpuTest {};

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
  return {pool(kind, 2, 8, 8, 16, 2, 2, 0, 0),    pool(kind, 1, 7, 9, 3, 3, 2, 1, 1),
          pool(kind, 3, 6, 6, 1, 2, 2, 0, 0),     pool(kind, 2, 5, 5, 33, 3, 1, 1, 1),
          pool(kind, 1, 7, 7, 64, 3, 2, 0, 1),    pool(kind, 1, 4, 4, 10, 4, 4, 0, 0),
          pool(kind, 2, 9, 9, 5, 2, 3, 0, 0),     pool(kind, 2, 300, 2, 5, 2, 2, 0, 0),
          pool(kind, 1, 40, 40, 4, 20, 20, 0, 0), volume(kind, 2, 5, 4, 6, 16, 2, 2, 0),
          volume(kind, 1, 7, 5, 5, 5, 3, 2, 1),   volume(kind, 2, 4, 1, 1, 20, 1, 1, 0)};
}

TEST_F(CudaPool, ForwardAndBackwardHaveTheBitsOfTheCpu) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const PoolSpec& s : pool_specs(kind))
      for (int shift : {0, 1}) {
        const std::string what = fmt::format("{} {}x{}x{}x{}x{} window {} stride {} shift {}",
                                             kind == PoolKind::max ? "max" : "average", s.n, s.in_d, s.in_h,
                                             s.in_w, s.channels, s.window_h, s.stride_h, shift);
        const std::int64_t xs = s.n * s.in_d * s.in_h * s.in_w * s.channels,
                           ys = s.n * s.out_d * s.out_h * s.out_w * s.channels;
        Values x = random_values(xs, 1);
        for (double& value : x)
          value = std::round(value * 4.0);  // many ties: the first maximum gets the gradient
        x[x.size() / 2] = std::nan("");
        const Floats cx(x), cdy(random_values(ys, 2));
        const auto cpu = cpu_kernels().make.pool(s, 1);
        const TestLane cpu_lane(cpu->scratch_bytes());
        const Buffer saved(cpu_device(), cpu->saved_bytes());
        Floats y(ys), dx(xs);
        cpu->forward(cpu_lane, cx.data(), y.data(), saved.data());
        cpu->backward(cpu_lane, cdy.data(), saved.data(), dx.data());

        const auto primitive = gpu().make.pool(s, 1);
        EXPECT_EQ(primitive->saved_bytes(), cpu->saved_bytes());
        const CudaLane lane(primitive->scratch_bytes());
        const OnDevice<unsigned char> gpu_saved(static_cast<std::int64_t>(primitive->saved_bytes()));
        const DeviceFloats gx(x, shift), gdy(cdy.values(), shift), gy(ys, shift), gdx(xs, shift);
        primitive->forward(lane, gx.data(), gy.data(), gpu_saved.data());
        primitive->backward(lane, gdy.data(), gpu_saved.data(), gdx.data());
        expect_same(gy.host(), host_of(y), "y " + what);
        expect_same(gdx.host(), host_of(dx), "dx " + what);

        PoolSpec inference = s;
        inference.training = false;
        const auto forward_only = gpu().make.pool(inference, 1);
        EXPECT_EQ(forward_only->saved_bytes(), 0U);
        const DeviceFloats again(ys, shift);
        forward_only->forward(lane, gx.data(), again.data(), nullptr);
        expect_same(again.host(), host_of(y), "inference " + what);
        EXPECT_THROW(forward_only->backward(lane, gdy.data(), nullptr, gdx.data()), Error);
      }
}

template <typename T>
void expect_those_of_the_cpu(PoolSpec s, int shift) {
  s.dtype = dtype_of<T>;
  const std::string what = fmt::format("{} {} {}x{}x{}x{}x{} window {} stride {} shift {}", name_of(s.dtype),
                                       s.kind == PoolKind::max ? "max" : "average", s.n, s.in_d, s.in_h,
                                       s.in_w, s.channels, s.window_h, s.stride_h, shift);
  const std::int64_t xs = s.n * s.in_d * s.in_h * s.in_w * s.channels,
                     ys = s.n * s.out_d * s.out_h * s.out_w * s.channels;
  Values numbers = random_values(xs, 1);
  for (double& value : numbers)
    value = std::round(value * 4.0);  // many ties: the first maximum gets the gradient
  numbers[numbers.size() / 2] = std::nan("");
  const Stored<T> x(numbers), dy(random_values(ys, 2)), y(ys), dx(xs);
  const auto cpu = cpu_kernels().make.pool(s, 1);
  const Buffer saved(cpu_device(), cpu->saved_bytes());
  cpu->forward(TestLane(cpu->scratch_bytes()), x.data(), y.data(), saved.data());
  cpu->backward(TestLane(cpu->scratch_bytes()), dy.data(), saved.data(), dx.data());

  const auto primitive = gpu().make.pool(s, 1);
  const CudaLane lane(primitive->scratch_bytes());
  const OnDevice<unsigned char> gpu_saved(static_cast<std::int64_t>(primitive->saved_bytes()));
  const OnDevice<T> gx = on_device(x, shift), gdy = on_device(dy, shift), gy(ys, shift), gdx(xs, shift);
  primitive->forward(lane, gx.data(), gy.data(), gpu_saved.data());
  primitive->backward(lane, gdy.data(), gpu_saved.data(), gdx.data());
  expect_same(gy, y, "y " + what);
  expect_same(gdx, dx, "dx " + what);
  const DeviceFloats full(ys);
  EXPECT_THROW(primitive->forward(lane, gx.data(), full.data(), gpu_saved.data()), Error);
}

TEST_F(CudaPool, In16BitsHasTheBitsOfTheCpu) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const PoolSpec& s : pool_specs(kind))
      for (int shift : {0, 1}) {
        expect_those_of_the_cpu<BFloat16>(s, shift);
        expect_those_of_the_cpu<Float16>(s, shift);
      }
}

template <typename T>
void expect_those_of_float32(const NamedActivation& named, std::int64_t count, int shift) {
  const std::string what = fmt::format("{} {} {} shift {}", named.name, name_of(dtype_of<T>), count, shift);
  const Stored<T> x(random_values(count, 4, -8.0, 8.0)), dy(random_values(count, 5));
  const CudaLane lane(0);
  const DeviceFloats wide_x(x.values()), wide_dy(dy.values()), wide_y(count), wide_dx(count);
  const OnDevice<T> gx = on_device(x, shift), gdy = on_device(dy, shift), gy(count, shift), gdx(count, shift);
  const auto run = [&](ConstData in, ConstData gradient, Data out, Data back) {
    gpu().activation.forward(lane, named.activation, count, in, out);
    gpu().activation.backward(lane, named.activation, count, gradient, in, back);
  };
  run(wide_x.data(), wide_dy.data(), wide_y.data(), wide_dx.data());
  run(gx.data(), gdy.data(), gy.data(), gdx.data());
  expect_same(gy, Stored<T>(wide_y.values()), what);
  expect_same(gdx, Stored<T>(wide_dx.values()), "derivative of " + what);
}

TEST_F(CudaActivation, In16BitsIsFloat32RoundedOnce) {
  for (const NamedActivation& named : activations())
    for (std::int64_t count : {1, 3, 17, 1023, 4100})
      for (int shift : {0, 1}) {
        expect_those_of_float32<BFloat16>(named, count, shift);
        expect_those_of_float32<Float16>(named, count, shift);
      }
}

TEST_F(CudaActivation, ForwardAndBackwardMatchTheReference) {
  for (const auto& [name, activation] : activations())
    for (std::int64_t count : {1, 3, 17, 1023, 4100})
      for (int shift : {0, 1}) {
        const Values x = random_values(count, 4, -8.0, 8.0), dy = random_values(count, 5);
        Values y, dx, magnitude;
        for (std::size_t i = 0; i < x.size(); ++i) {
          y.push_back(reference::activation(activation, x[i]));
          dx.push_back(dy[i] * reference::activation_derivative(activation, x[i]));
          magnitude.push_back(std::abs(y[i]));
        }
        const CudaLane lane(0);
        const DeviceFloats gx(x, shift), gdy(dy, shift), gy(count, shift), gdx(count, shift);
        gpu().activation.forward(lane, activation, count, gx.data(), gy.data());
        gpu().activation.backward(lane, activation, count, gdy.data(), gx.data(), gdx.data());
        const std::string what = fmt::format("{} {} shift {}", name, count, shift);
        // The argument of an exponential is at most 2 * 0.8 * (8 + 0.045 * 8^3) = 49, or 8^2 / 2 = 32, after
        // a few operations; the result's relative error is the argument times its roundings. A few more
        // operations follow.
        expect_close(gy.values(), y, magnitude, (4 * 49 + 16) * kRounding, 1e-37, "y " + what);
        // The derivative is a sum of terms of at most 8 in total.
        expect_close(gdx.values(), dx, Values(x.size(), 1.0), 0.0, 8 * 32 * kRounding, "dx " + what);
        gpu().activation.backward(lane, activation, count, gdy.data(), gx.data(), gdy.data());
        expect_same(gdy.host(), gdx.host(), "in place " + what);
      }
}

/// The polynomial's relative error is 2^-24 at most, and about four roundings follow; expf may be wrong by
/// two units in the last place.
TEST_F(CudaActivation, GeluIsAsAccurateInItsTailAsElsewhere) {
  Values x;
  for (int i = -12800; i <= 12800; ++i) x.push_back(i / 1024.0);
  const auto count = static_cast<std::int64_t>(x.size());
  Values y, slope;
  for (const double value : x) {
    y.push_back(reference::activation({ActivationKind::gelu_erf}, value));
    slope.push_back(reference::activation_derivative({ActivationKind::gelu_erf}, value));
  }
  const CudaLane lane(0);
  const DeviceFloats gx(x), ones(Values(x.size(), 1.0)), gy(count), gdx(count);
  gpu().activation.forward(lane, {ActivationKind::gelu_erf}, count, gx.data(), gy.data());
  gpu().activation.backward(lane, {ActivationKind::gelu_erf}, count, ones.data(), gx.data(), gdx.data());
  expect_close(gy.values(), y, absolute(y), 12 * kRounding, 1e-37, "gelu");
  expect_close(gdx.values(), slope, Values(x.size(), 1.0), 8 * kRounding, 0.0, "slope");
}

TEST_F(CudaActivation, NanStaysNanAndLargeNumbersDoNotOverflow) {
  for (const auto& [name, activation] : activations()) {
    const CudaLane lane(0);
    const Values numbers{std::nan(""), 1000.0, -1000.0, 3e38, -3e38};
    const DeviceFloats x(numbers), dy(Values(5, 1.0)), y(5), dx(5);
    gpu().activation.forward(lane, activation, 5, x.data(), y.data());
    gpu().activation.backward(lane, activation, 5, dy.data(), x.data(), dx.data());
    const std::vector<float> values = y.host(), slopes = dx.host();
    EXPECT_TRUE(std::isnan(values[0])) << name;
    for (std::size_t i = 1; i < 5; ++i) {
      const double input = static_cast<double>(static_cast<float>(numbers[i]));
      EXPECT_NEAR(static_cast<double>(values[i]), reference::activation(activation, input),
                  std::abs(input) * 4 * kRounding)
          << name;
      EXPECT_NEAR(static_cast<double>(slopes[i]), reference::activation_derivative(activation, input),
                  4 * kRounding)
          << name;
    }
  }
}

}  // namespace
}  // namespace lockstep
