// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"
#include "unit/kernels/stored_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaSpatial : public GpuTest {};

TEST_F(CudaSpatial, PadAndCropHaveTheBitsOfTheCpu) {
  for (const MarginSpec& s :
       {MarginSpec{.n = 2, .inner = {1, 3, 4}, .channels = 3, .before = {0, 1, 0}, .after = {0, 0, 2}},
        MarginSpec{.n = 3, .inner = {2, 3, 1}, .channels = 20, .before = {1, 0, 3}, .after = {2, 1, 1}},
        MarginSpec{.n = 2, .inner = {2, 30, 17}, .channels = 4, .before = {1, 2, 0}, .after = {0, 0, 3}},
        MarginSpec{.n = 2,
        .inner = {2, 3, 17},
        .channels = 20,
        .before = {2, 1, 3},
        .after = {1, 2, 17},
        .circular = {true, false, true}}})
    for (int shift : {0, 1}) {
      std::int64_t inner = s.n * s.channels, outer = s.n * s.channels;
      for (int i = 0; i < 3; ++i) {
        inner *= s.inner[i];
        outer *= s.before[i] + s.inner[i] + s.after[i];
      }
      const Floats x(random_values(inner, 1)), dy(random_values(outer, 2)), padded(outer), dx(inner);
      cpu_kernels().spatial.pad({}, s, x.data(), 0.75F, padded.data());
      cpu_kernels().spatial.pad_backward({}, s, dy.data(), dx.data());
      const CudaLane lane;
      const DeviceFloats gx(x.values(), shift), gdy(dy.values(), shift), gpadded(outer, shift),
          back(inner, shift), gdx(inner, shift);
      gpu().spatial.pad(lane, s, gx.data(), 0.75F, gpadded.data());
      gpu().spatial.crop(lane, s, gpadded.data(), back.data());
      gpu().spatial.pad_backward(lane, s, gdy.data(), gdx.data());
      expect_same(gdx.host(), host_of(dx), "gradient of padded");
      expect_same(gpadded.host(), host_of(padded), "padded");
      expect_same(back.host(), host_of(x), "cropped");
    }
}

TEST_F(CudaSpatial, UpsamplingHasTheBitsOfTheCpu) {
  using Forward = void (SpatialKernels::*)(const Lane&, const UpsampleSpec&, ConstData, Data) const;
  struct Method {
    const char* name;
    Forward forward, backward;
    bool align_corners;
  };
  const Method methods[] = {
      {"nearest", &SpatialKernels::upsample_nearest, &SpatialKernels::upsample_nearest_backward, false},
      {"bilinear", &SpatialKernels::upsample_bilinear, &SpatialKernels::upsample_bilinear_backward, false},
      {"corners", &SpatialKernels::upsample_bilinear, &SpatialKernels::upsample_bilinear_backward, true}};
  for (const Method& method : methods)
    for (UpsampleSpec s : {UpsampleSpec{.n = 2, .in = {1, 3, 4}, .channels = 3, .factor = {1, 2, 2}},
                           UpsampleSpec{.n = 1, .in = {1, 1, 3}, .channels = 16, .factor = {1, 1, 4}},
                           UpsampleSpec{.n = 1, .in = {1, 17, 9}, .channels = 20, .factor = {1, 3, 5}},
                           UpsampleSpec{.n = 2, .in = {3, 2, 2}, .channels = 5, .factor = {2, 3, 2}}})
      for (int shift : {0, 1}) {
        s.align_corners = method.align_corners;
        if (s.in[0] > 1 && std::string(method.name) != "nearest") continue;
        const std::int64_t in = s.n * s.in[0] * s.in[1] * s.in[2] * s.channels,
                           out = in * s.factor[0] * s.factor[1] * s.factor[2];
        const Floats x(random_values(in, 1)), dy(random_values(out, 2)), y(out), dx(in);
        (cpu_kernels().spatial.*method.forward)({}, s, x.data(), y.data());
        (cpu_kernels().spatial.*method.backward)({}, s, dy.data(), dx.data());
        const CudaLane lane;
        const DeviceFloats gx(x.values(), shift), gdy(dy.values(), shift), gy(out, shift), gdx(in, shift);
        (gpu().spatial.*method.forward)(lane, s, gx.data(), gy.data());
        (gpu().spatial.*method.backward)(lane, s, gdy.data(), gdx.data());
        expect_same(gy.host(), host_of(y), std::string("y ") + method.name);
        expect_same(gdx.host(), host_of(dx), std::string("dx ") + method.name);
      }
}

template <typename T>
std::vector<float> widened(const std::vector<T>& numbers) {
  std::vector<float> wide;
  for (const T number : numbers) wide.push_back(to_float(number));
  return wide;
}

/// 16-bit values also have the CPU's bits.
template <typename T>
void check_halves(int shift) {
  const MarginSpec m{.n = 3, .inner = {2, 3, 1}, .channels = 20, .before = {1, 0, 3}, .after = {2, 1, 1}};
  const Stored<T> inner(random_values(3 * 2 * 3 * 20, 1)), outer(3 * 5 * 4 * 5 * 20);
  const CudaLane lane;
  const OnDevice<T> ginner(inner.host(), shift), gouter(3 * 5 * 4 * 5 * 20, shift),
      back(3 * 2 * 3 * 20, shift);
  cpu_kernels().spatial.pad({}, m, inner.data(), 0.1F, outer.data());
  gpu().spatial.pad(lane, m, ginner.data(), 0.1F, gouter.data());
  gpu().spatial.crop(lane, m, gouter.data(), back.data());
  expect_same(widened(gouter.host()), host_of(outer.widened()), "padded");
  expect_same(widened(back.host()), host_of(inner.widened()), "cropped");
  for (const std::int64_t channels : {3, 16, 20})
    for (const bool bilinear : {false, true}) {
      const UpsampleSpec s{.n = 1, .in = {1, 7, 9}, .channels = channels, .factor = {1, 3, 5}};
      const std::int64_t in = 7 * 9 * channels, out = in * 15;
      const Stored<T> x(random_values(in, 1)), dy(random_values(out, 2)), y(out), dx(in);
      const OnDevice<T> gx(x.host(), shift), gdy(dy.host(), shift), gy(out, shift), gdx(in, shift);
      const auto run = [&](const SpatialKernels& k, const Lane& on, ConstData from, Data to,
                           ConstData gradient, Data result) {
        bilinear ? k.upsample_bilinear(on, s, from, to) : k.upsample_nearest(on, s, from, to);
        bilinear ? k.upsample_bilinear_backward(on, s, gradient, result)
                 : k.upsample_nearest_backward(on, s, gradient, result);
      };
      run(cpu_kernels().spatial, {}, x.data(), y.data(), dy.data(), dx.data());
      run(gpu().spatial, lane, gx.data(), gy.data(), gdy.data(), gdx.data());
      expect_same(widened(gy.host()), host_of(y.widened()), "y");
      expect_same(widened(gdx.host()), host_of(dx.widened()), "dx");
    }
}

TEST_F(CudaSpatial, In16BitsHasTheBitsOfTheCpu) {
  for (const int shift : {0, 1}) {
    check_halves<BFloat16>(shift);
    check_halves<Float16>(shift);
  }
}

}  // namespace
}  // namespace lockstep
