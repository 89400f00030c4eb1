// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for convolution_cuda.cpp (cuDNN) where the GPU is emulated: plain loops, queued on the lane's
// stream. The packed weights are a copy of the plain ones, and only the pack is read: forgetting to pack is
// seen.
#include <vector>

#include "core/error.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// Calls f(index in x, index in the kernel, index in y) for every product.
template <typename F>
void for_each_product(const ConvolutionSpec& s, const F& f) {
  const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t out = 0; out < s.out_positions(); ++out)
      for (std::int64_t k = 0; k < s.kernel_d * s.kernel_h * s.kernel_w; ++k) {
        const std::int64_t od = out / (s.out_h * s.out_w), oh = out / s.out_w % s.out_h, ow = out % s.out_w;
        const std::int64_t kd = k / (s.kernel_h * s.kernel_w), kh = k / s.kernel_w % s.kernel_h,
                           kw = k % s.kernel_w;
        const std::int64_t id = od * s.stride_d - s.pad_front + kd * s.dilation_d;
        const std::int64_t ih = oh * s.stride_h - s.pad_top + kh * s.dilation_h;
        const std::int64_t iw = ow * s.stride_w - s.pad_left + kw * s.dilation_w;
        if (id < 0 || id >= s.in_d || ih < 0 || ih >= s.in_h || iw < 0 || iw >= s.in_w) continue;
        const std::int64_t x = (((n * s.in_d + id) * s.in_h + ih) * s.in_w + iw) * s.in_c;
        const std::int64_t y = (n * s.out_positions() + out) * s.out_c;
        for (std::int64_t i = 0; i < group_in; ++i)
          for (std::int64_t o = 0; o < s.out_c; ++o)
            f(x + o / group_out * group_in + i, (k * group_in + i) * s.out_c + o, y + o);
      }
}

class EmulatedConvolution final : public LinearPrimitive {
 public:
  explicit EmulatedConvolution(const ConvolutionSpec& spec) : s_(spec) {}

  /// Some, so that a lane that brings too little is found.
  std::size_t scratch_bytes() const override { return 4096; }
  std::size_t packed_bytes() const override { return static_cast<std::size_t>(weights()) * sizeof(float); }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const EmulatedConvolution*>(&other);
    return o != nullptr && o->weights() == weights();
  }
  void pack(const Lane& lane, const float* weights_in, void* packed) const override {
    check(cudaMemcpyAsync(packed, weights_in, packed_bytes(), cudaMemcpyDeviceToDevice, stream_of(lane)),
          "packing weights");
  }

  void forward(const Lane& lane, ConstData x, const float*, const void* packed, const float* bias,
               Data y) const override {
    const auto* w = static_cast<const float*>(packed);
    const float* added = s_.bias ? bias : nullptr;
    queue(lane, [s = s_, x, w, added, y] {
      std::vector<double> sums(static_cast<std::size_t>(s.n * s.out_positions() * s.out_c));
      for_each_product(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
        sums[static_cast<std::size_t>(out)] += static_cast<double>(x[in]) * static_cast<double>(w[k]);
      });
      for (std::size_t i = 0; i < sums.size(); ++i)
        y[i] = static_cast<float>(
            sums[i] +
            (added == nullptr ? 0.0 : static_cast<double>(added[i % static_cast<std::size_t>(s.out_c)])));
    });
    if (s_.relu) elementwise_kernels().relu(lane, s_.n * s_.out_positions() * s_.out_c, y, y);
  }

  void backward_data(const Lane& lane, ConstData dy, const float*, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    const auto* w = static_cast<const float*>(packed);
    queue(lane, [s = s_, dy, w, dx] {
      std::vector<double> sums(static_cast<std::size_t>(s.n * s.in_positions() * s.in_c));
      for_each_product(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
        sums[static_cast<std::size_t>(in)] += static_cast<double>(dy[out]) * static_cast<double>(w[k]);
      });
      for (std::size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<float>(sums[i]);
    });
  }

  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    queue(lane, [s = s_, count = weights(), x, dy, dweights] {
      std::vector<double> sums(static_cast<std::size_t>(count));
      for_each_product(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
        sums[static_cast<std::size_t>(k)] += static_cast<double>(x[in]) * static_cast<double>(dy[out]);
      });
      for (std::size_t i = 0; i < sums.size(); ++i) dweights[i] = static_cast<float>(sums[i]);
    });
  }

  double flops() const override {
    return 2.0 * static_cast<double>(s_.n * s_.out_positions() * s_.out_c) *
           static_cast<double>(s_.kernel_rows());
  }

 private:
  std::int64_t weights() const { return s_.kernel_rows() * s_.out_c; }

  template <typename F>
  void queue(const Lane& lane, const F& work) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} brings {} bytes of scratch, {} needed",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    check(emulation::enqueue(stream_of(lane), work), "an emulated convolution");
  }

  ConvolutionSpec s_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_convolution(const ConvolutionSpec& spec, const CudaOptions&) {
  return std::make_unique<EmulatedConvolution>(spec);
}
std::string convolution_library_version() { return "emulated convolutions"; }

}  // namespace lockstep::cuda
