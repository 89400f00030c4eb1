// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces convolution_cuda.cpp (cuDNN) on the emulated GPU with plain loops, queued on the lane's stream.
// The packed weights are a copy of the plain ones in the activation type. Only the pack is read, so a missing
// pack() is detected. As with cuDNN, in 16-bit types bias and relu are a pass after the rounded product, and
// the weight gradient is rounded.
#include "core/error.h"
#include "double_sums.h"
#include "emulated_algorithm.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/linear_cuda.h"

namespace lockstep::cuda {
namespace {

/// Calls f(first index in x, kernel position, first index in y) for every pair of an output position and an
/// input position that it reads.
template <typename F>
void for_each_pair(const ConvolutionSpec& s, const F& f) {
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
        f((((n * s.in_d + id) * s.in_h + ih) * s.in_w + iw) * s.in_c, k,
          (n * s.out_positions() + out) * s.out_c);
      }
}

/// {kernel position, input channel of the group, output channel}, with the last two axes exchanged.
Doubles transposed(const ConvolutionSpec& s, const Doubles& weights) {
  const std::int64_t group_in = s.in_c / s.groups;
  Doubles all(weights.size());
  for (std::int64_t row = 0; row < s.kernel_rows(); ++row)
    for (std::int64_t o = 0; o < s.out_c; ++o)
      all[static_cast<std::size_t>((row / group_in * s.out_c + o) * group_in + row % group_in)] =
          weights[static_cast<std::size_t>(row * s.out_c + o)];
  return all;
}

class EmulatedConvolution final : public LinearPrimitive {
 public:
  explicit EmulatedConvolution(const ConvolutionSpec& spec) : s_(spec) {
    note_algorithm(fmt::format("a convolution of {} x {} x {} to {}", spec.n, spec.in_positions(), spec.in_c,
                               spec.out_c),
                   emulated_algorithm());
  }

  /// Nonzero, so that a lane with too little scratch is detected.
  std::size_t scratch_bytes() const override { return 4096; }
  std::size_t packed_bytes() const override {
    return static_cast<std::size_t>(weights()) * size_in_bytes(s_.dtype);
  }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const EmulatedConvolution*>(&other);
    return o != nullptr && o->packed_bytes() == packed_bytes() && o->s_.dtype == s_.dtype;
  }
  void pack(const Lane& lane, const float* weights_in, void* packed) const override {
    elementwise_kernels().convert(lane, weights(), weights_in, {packed, s_.dtype});
  }

  void forward(const Lane& lane, ConstData x, const float*, const void* packed, const float* bias,
               Data y) const override {
    const float* added = s_.bias ? bias : nullptr;
    const bool apart = s_.dtype != DType::f32;
    with_type(s_.dtype, [&]<typename T>(T) {
      queue(lane, [s = s_, x = x.as<T>(), w = static_cast<const T*>(packed),
                   in_product = apart ? nullptr : added, y = y.as<T>()] {
        Doubles sums(static_cast<std::size_t>(s.n * s.out_positions() * s.out_c));
        const Doubles xs = doubles(x, s.n * s.in_positions() * s.in_c);
        const Doubles ws = doubles(w, s.kernel_rows() * s.out_c);
        const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
        for_each_pair(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
          for (std::int64_t c = 0; c < s.in_c; ++c) {
            const std::int64_t first = c / group_in * group_out;
            add_product(xs[static_cast<std::size_t>(in + c)],
                        ws.data() + (k * group_in + c % group_in) * s.out_c + first, group_out,
                        sums.data() + out + first);
          }
        });
        if (in_product != nullptr)
          for (std::size_t i = 0; i < sums.size(); ++i)
            sums[i] += static_cast<double>(in_product[i % static_cast<std::size_t>(s.out_c)]);
        store(sums, y);
      });
    });
    add_bias(lane, s_.n * s_.out_positions(), s_.out_c, apart ? added : nullptr, s_.relu, y);
  }

  void backward_data(const Lane& lane, ConstData dy, const float*, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    with_type(s_.dtype, [&]<typename T>(T) {
      queue(lane, [s = s_, dy = dy.as<T>(), w = static_cast<const T*>(packed), dx = dx.as<T>()] {
        Doubles sums(static_cast<std::size_t>(s.n * s.in_positions() * s.in_c));
        const Doubles dys = doubles(dy, s.n * s.out_positions() * s.out_c);
        const Doubles ws = transposed(s, doubles(w, s.kernel_rows() * s.out_c));
        const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
        for_each_pair(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
          for (std::int64_t o = 0; o < s.out_c; ++o)
            add_product(dys[static_cast<std::size_t>(out + o)], ws.data() + (k * s.out_c + o) * group_in,
                        group_in, sums.data() + in + o / group_out * group_in);
        });
        store(sums, dx);
      });
    });
  }

  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    with_type(s_.dtype, [&]<typename T>(T) {
      queue(lane, [s = s_, count = weights(), x = x.as<T>(), dy = dy.as<T>(), dweights] {
        Doubles sums(static_cast<std::size_t>(count));
        const Doubles xs = doubles(x, s.n * s.in_positions() * s.in_c);
        const Doubles dys = doubles(dy, s.n * s.out_positions() * s.out_c);
        const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
        for_each_pair(s, [&](std::int64_t in, std::int64_t k, std::int64_t out) {
          for (std::int64_t c = 0; c < s.in_c; ++c) {
            const std::int64_t first = c / group_in * group_out;
            add_product(xs[static_cast<std::size_t>(in + c)], dys.data() + out + first, group_out,
                        sums.data() + (k * group_in + c % group_in) * s.out_c + first);
          }
        });
        for (std::size_t i = 0; i < sums.size(); ++i)
          dweights[i] = to_float(from_float<T>(static_cast<float>(sums[i])));  // cuDNN returns them in T
      });
    });
  }

  double flops() const override {
    return 2.0 * static_cast<double>(s_.n * s_.out_positions() * s_.out_c) *
           static_cast<double>(s_.kernel_rows());
  }

 private:
  template <typename T>
  static void store(const Doubles& sums, T* to) {
    for (std::size_t i = 0; i < sums.size(); ++i) to[i] = from_float<T>(static_cast<float>(sums[i]));
  }
  std::int64_t weights() const { return s_.kernel_rows() * s_.out_c; }

  template <typename F>
  void queue(const Lane& lane, const F& work) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
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
