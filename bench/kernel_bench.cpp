// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the CPU kernels on one core: GEMM and convolutions in GFLOP/s compared with the machine's peak
// (oneDNN's sgemm on large squares); norms, softmax and other kernels in GB/s compared with memcpy; the
// convolutions of ResNet-20 in samples/s. Values are the best of several repeats, since other load only slows
// a measurement down.
//
//   kernel_bench [--json FILE] [--repeats N]
#include <oneapi/dnnl/dnnl.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench_conversions.h"
#include "core/buffer.h"
#include "core/thread_pool.h"
#include "core/timer.h"
#include "kernel_figures.h"
#include "kernels/kernel_table.h"
#include "kernels/rules.h"

namespace {

using namespace lockstep;

int repeats = 7;

/// Seconds of one call: the best of `repeats` measurements of at least 10 ms each.
double best_seconds(const std::function<void()>& call) {
  call();
  Timer timer;
  call();
  const int calls = std::max(1, static_cast<int>(0.01 / std::max(timer.seconds(), 1e-9)));
  double best = 1e9;
  for (int r = 0; r < repeats; ++r) {
    timer.restart();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, timer.seconds() / calls);
  }
  return best;
}

/// Aligned floats with values around zero, without denormals and zeros, which have a different speed.
Buffer floats(std::int64_t count) {
  Buffer buffer(cpu_device(), static_cast<std::size_t>(count) * sizeof(float));
  const auto values = buffer.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 1000) * 1e-3F - 0.5F;
  return buffer;
}
float* data(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

Lane lane_with(const Buffer& scratch) { return {0, nullptr, scratch.data(), scratch.size_bytes()}; }

/// The same numbers in another activation type.
Buffer activations(std::int64_t count, DType type) {
  const Buffer wide = floats(count);
  Buffer buffer(cpu_device(), static_cast<std::size_t>(count) * size_in_bytes(type));
  cpu_kernels().elementwise.convert(Lane{}, count, data(wide), {buffer.data(), type});
  return buffer;
}

/// Times of the three passes of a linear primitive, in seconds.
struct Passes {
  double forward = 0.0, backward_data = 0.0, backward_weights = 0.0, pack = 0.0, flops = 0.0;
  double all() const { return forward + backward_data + backward_weights; }
};
Passes measure(const LinearPrimitive& primitive, std::int64_t x_count, std::int64_t y_count,
               std::int64_t w_count, std::int64_t out, DType type = DType::f32) {
  const Buffer x_memory = activations(x_count, type), y_memory = activations(y_count, type),
               w = floats(w_count), b = floats(out), dx_memory = activations(x_count, type),
               dw = floats(w_count);
  const Data x(x_memory.data(), type), y(y_memory.data(), type), dx(dx_memory.data(), type);
  const Buffer scratch(cpu_device(), primitive.scratch_bytes()),
      packed(cpu_device(), primitive.packed_bytes());
  const Lane lane = lane_with(scratch);
  Passes p;
  p.pack = best_seconds([&] { primitive.pack(lane, data(w), packed.data()); });
  p.forward = best_seconds([&] { primitive.forward(lane, x, data(w), packed.data(), data(b), y); });
  p.backward_data = best_seconds([&] { primitive.backward_data(lane, y, data(w), packed.data(), dx); });
  p.backward_weights = best_seconds([&] { primitive.backward_weights(lane, x, y, data(dw)); });
  p.flops = primitive.flops();
  return p;
}

double peak_gemm() {
  constexpr std::int64_t kSize = 1536;
  const Buffer a = floats(kSize * kSize), b = floats(kSize * kSize), c = floats(kSize * kSize);
  const double seconds = best_seconds([&] {
    if (dnnl_sgemm('N', 'N', kSize, kSize, kSize, 1.0F, data(a), kSize, data(b), kSize, 0.0F, data(c),
                   kSize) != dnnl_success)
      std::abort();
  });
  return 2.0 * kSize * kSize * kSize / seconds * 1e-9;
}

void bench_dense() {
  std::printf("dense, forward / backward data / backward weights\n");
  for (auto [in, out] : {std::pair{784, 512}, {512, 512}, {512, 10}, {3136, 128}})
    for (std::int64_t n : {16, 64, 128}) {
      DenseSpec s;
      s.n = n, s.in = in, s.out = out, s.bias = s.relu = true;
      const auto primitive = cpu_kernels().make.dense(s, 1);
      const Passes p = measure(*primitive, n * in, n * out, static_cast<std::int64_t>(in) * out, out);
      const std::string name =
          "dense " + std::to_string(n) + " x " + std::to_string(in) + " x " + std::to_string(out);
      report(name + " forward", p.flops / p.forward * 1e-9, "GFLOP/s");
      report(name + " backward data", p.flops / p.backward_data * 1e-9, "GFLOP/s");
      report(name + " backward weights", p.flops / p.backward_weights * 1e-9, "GFLOP/s");
    }
}

/// A 3x3 convolution of ResNet-20 on 32x32 images (He et al. 2016, section 4.2), and how often it occurs.
struct ResnetLayer {
  std::int64_t size, in_c, out_c, stride;
  int times;
};
constexpr ResnetLayer kResnet20[] = {{32, 3, 16, 1, 1},  {32, 16, 16, 1, 6}, {32, 16, 32, 2, 1},
                                     {16, 32, 32, 1, 5}, {16, 32, 64, 2, 1}, {8, 64, 64, 1, 5}};

ConvolutionSpec spec_of(const ResnetLayer& layer, std::int64_t n) {
  ConvolutionSpec s;
  s.n = n;
  s.in_h = s.in_w = layer.size;
  s.in_c = layer.in_c, s.out_c = layer.out_c;
  s.out_h = s.out_w = layer.size / layer.stride;
  s.kernel_h = s.kernel_w = 3;
  s.stride_h = s.stride_w = layer.stride;
  s.pad_top = s.pad_left = layer.stride == 1 ? 1 : 0;  // "same"
  s.pad_bottom = s.pad_right = 1;
  return s;
}

void bench_convolutions() {
  std::printf("convolutions of ResNet-20, channels last\n");
  for (std::int64_t n : {8, 16, 32, 64, 128}) {
    double forward = 0.0, backward = 0.0, pack = 0.0;
    for (const ResnetLayer& layer : kResnet20) {
      const ConvolutionSpec s = spec_of(layer, n);
      const auto primitive = cpu_kernels().make.convolution(s, 1);
      const Passes p = measure(*primitive, n * s.in_h * s.in_w * s.in_c, n * s.out_h * s.out_w * s.out_c,
                               9 * s.in_c * s.out_c, s.out_c);
      // The gradient of the images is not needed.
      const bool first = layer.in_c == 3;
      forward += p.forward * layer.times;
      backward += (p.backward_weights + (first ? 0.0 : p.backward_data)) * layer.times;
      pack += p.pack * layer.times;
      if (n != 32) continue;
      const std::string name = "conv " + std::to_string(layer.in_c) + " to " + std::to_string(layer.out_c) +
                               " at " + std::to_string(layer.size) + ", stride " +
                               std::to_string(layer.stride);
      report(name + " forward", p.flops / p.forward * 1e-9, "GFLOP/s");
      report(name + " backward data", p.flops / p.backward_data * 1e-9, "GFLOP/s");
      report(name + " backward weights", p.flops / p.backward_weights * 1e-9, "GFLOP/s");
    }
    const std::string name = "ResNet-20 convolutions, microshard " + std::to_string(n);
    report(name + ", forward", static_cast<double>(n) / forward, "samples/s");
    report(name + ", forward and backward", static_cast<double>(n) / (forward + backward), "samples/s");
    report(name + ", packing per step", pack * 1e6, "us");
  }
}

/// Speed in the 16-bit types as multiples of float32's; the three are measured directly one after the other.
void bench_types() {
  std::printf("16-bit activations, times the speed of float32\n");
  const auto compare = [](const std::string& name, const auto& passes_in) {
    const Passes full = passes_in(DType::f32);
    for (const DType type : {DType::bf16, DType::f16}) {
      const Passes half = passes_in(type);
      const std::string of = name + " " + std::string(name_of(type));
      report(of + " forward", full.forward / half.forward, "x");
      report(of + " backward data", full.backward_data / half.backward_data, "x");
      report(of + " backward weights", full.backward_weights / half.backward_weights, "x");
    }
  };
  for (std::int64_t n : {64, 512})
    compare("dense " + std::to_string(n) + " x 1024 x 1024", [n](DType type) {
      const DenseSpec s{.n = n, .in = 1024, .out = 1024, .bias = true, .dtype = type};
      return measure(*cpu_kernels().make.dense(s, 1), n * 1024, n * 1024, 1024 * 1024, 1024, type);
    });
  compare("ResNet-20 convolutions, microshard 32", [](DType type) {
    Passes sum;
    for (const ResnetLayer& layer : kResnet20) {
      ConvolutionSpec s = spec_of(layer, 32);
      s.dtype = type;
      const Passes p = measure(*cpu_kernels().make.convolution(s, 1), s.n * s.in_h * s.in_w * s.in_c,
                               s.n * s.out_h * s.out_w * s.out_c, 9 * s.in_c * s.out_c, s.out_c, type);
      sum.forward += p.forward * layer.times;
      sum.backward_weights += p.backward_weights * layer.times;
      if (layer.in_c != 3) sum.backward_data += p.backward_data * layer.times;  // not that of the images
    }
    return sum;
  });
}

double memcpy_gigabytes(std::int64_t count) {
  const Buffer from = floats(count), to = floats(count);
  const double seconds = best_seconds([&] { std::memcpy(to.data(), from.data(), from.size_bytes()); });
  return 2.0 * static_cast<double>(from.size_bytes()) / seconds * 1e-9;
}

/// GB/s of memory read and written, at `streams` floats per element.
void report_bandwidth(const std::string& name, std::int64_t count, int streams,
                      const std::function<void()>& call) {
  report(name, static_cast<double>(count) * streams * sizeof(float) / best_seconds(call) * 1e-9, "GB/s");
}

void bench_norm(std::int64_t rows, std::int64_t channels) {
  const std::int64_t count = rows * channels;
  const std::string size = fmt::format(" {} x {}", rows, channels);
  report("memcpy" + size, memcpy_gigabytes(count), "GB/s");
  const Buffer x = floats(count), y = floats(count), dy = floats(count), dx = floats(count),
               p = floats(channels),
               sums(cpu_device(), static_cast<std::size_t>(1 + channels * 2) * sizeof(double));
  auto* leaf = static_cast<double*>(sums.data());
  double* first = leaf + 1;
  double* second = first + channels;
  const NormKernels& norm = cpu_kernels().norm;
  const Lane lane;
  report_bandwidth("norm moments" + size, count, 1,
                   [&] { norm.moments(lane, rows, channels, data(x), leaf); });
  report_bandwidth("norm normalize + relu" + size, count, 2, [&] {
    norm.normalize(lane, rows, channels, data(x), data(p), data(p), data(p), nullptr, true, data(y));
  });
  report_bandwidth("norm normalize + residual + relu" + size, count, 3, [&] {
    norm.normalize(lane, rows, channels, data(x), data(p), data(p), data(p), data(dy), true, data(y));
  });
  NormKernels::Gradient gradient;
  gradient.dy = data(dy);
  gradient.y = data(y);
  gradient.x = data(x);
  gradient.scale = gradient.shift = gradient.mean = gradient.inverse_std = data(p);
  report_bandwidth("norm backward sums, g written" + size, count, 4,
                   [&] { norm.backward_sums(lane, rows, channels, gradient, data(dx), first, second); });
  report_bandwidth("norm backward sums" + size, count, 3,
                   [&] { norm.backward_sums(lane, rows, channels, gradient, nullptr, first, second); });
  NormKernels::Gradient from_x = gradient;
  from_x.y = nullptr;
  from_x.mask_from_x = true;
  report_bandwidth("norm backward sums, mask from x" + size, count, 2,
                   [&] { norm.backward_sums(lane, rows, channels, from_x, nullptr, first, second); });
  report_bandwidth("norm backward apply" + size, count, 4, [&] {
    norm.backward_apply(lane, rows, channels, gradient, data(p), data(p), data(p), data(dx));
  });
}

/// Rows that are normalised while they are in cache, compared with memcpy. A stream is one pass over the
/// array in memory.
void bench_rows(std::int64_t rows, std::int64_t channels) {
  const std::int64_t count = rows * channels;
  const std::string size = fmt::format(" {} x {}", rows, channels);
  report("memcpy" + size, memcpy_gigabytes(count), "GB/s");
  const GroupNormShape shape{.samples = rows, .width = channels};
  const KernelTable& k = cpu_kernels();
  const Buffer x = floats(count), y = floats(count), dy = floats(count), dx = floats(count),
               gamma = floats(channels), beta = floats(channels), dgamma = floats(channels),
               dbeta = floats(channels), statistics = floats(2 * rows),
               scratch(cpu_device(), k.group_norm.scratch_bytes(shape));
  const Lane lane = lane_with(scratch);
  report_bandwidth("layer_norm forward" + size, count, 2, [&] {
    k.group_norm.forward(lane, shape, data(x), 1e-5, data(gamma), data(beta), data(statistics), data(y));
  });
  report_bandwidth("layer_norm backward" + size, count, 3, [&] {
    k.group_norm.backward(lane, shape, data(x), data(dy), data(gamma), data(statistics), data(dx),
                          data(dgamma), data(dbeta));
  });
  report_bandwidth("softmax forward" + size, count, 2,
                   [&] { k.loss.softmax(lane, rows, channels, data(x), data(y)); });
  report_bandwidth("softmax backward" + size, count, 3,
                   [&] { k.loss.softmax_backward(lane, rows, channels, data(y), data(dy), data(dx)); });
  report_bandwidth("gelu forward" + size, count, 2,
                   [&] { k.activation.forward(lane, {ActivationKind::gelu_erf}, count, data(x), data(y)); });
  report_bandwidth("gelu backward" + size, count, 3, [&] {
    k.activation.backward(lane, {ActivationKind::gelu_erf}, count, data(dy), data(x), data(dx));
  });
}

void bench_rest() {
  std::printf("other kernels\n");
  const Lane lane;
  constexpr std::int64_t kCount = 1 << 18;
  const Buffer a = floats(kCount), b = floats(kCount), c = floats(kCount), d = floats(kCount),
               sums = floats(1024);
  const KernelTable& k = cpu_kernels();
  report_bandwidth("accumulate 1 MiB", kCount, 3,
                   [&] { k.elementwise.accumulate(lane, kCount, data(a), data(b)); });
  report_bandwidth("relu 1 MiB", kCount, 2, [&] { k.elementwise.relu(lane, kCount, data(a), data(c)); });
  report_bandwidth("mask and sum 4096 x 64", kCount, 3, [&] {
    k.elementwise.mask_and_sum_rows(lane, 4096, 64, data(a), data(b), data(c), data(sums));
  });
  report_bandwidth("dropout 512 x 512", kCount, 2,
                   [&] { k.elementwise.dropout(lane, 512, 512, data(a), 0.5F, 1, 2, 3, 0, data(c)); });
  report_bandwidth("gradient descent 1 MiB", kCount, 3, [&] {
    k.update.apply(lane, rule_step(GradientDescent{1e-9F}), kCount, data(a), data(b), {});
  });
  report_bandwidth("momentum 1 MiB", kCount, 5, [&] {
    k.update.apply(lane, rule_step(Momentum<false>{1e-9F, 0.9F, 0}), kCount, data(a), data(b), {data(c)});
  });
  for (float& value : d.as<float>()) value = 0.25F;
  report_bandwidth("adam 1 MiB", kCount, 7, [&] {
    k.update.apply(lane, rule_step(Adam<false>{1e-9F, 0.1F, 0.001F, 1e-8F}), kCount, data(a), data(b),
                   {data(c), data(d)});
  });
  std::vector<std::uint32_t> buckets(kDistributionBuckets);
  std::vector<Distribution> pieces(kCount / kDistributionPiece);
  report_bandwidth("histogram and moments 1 MiB", kCount, 1, [&] {
    k.distribution.measure(lane, kCount, data(a), nullptr, {}, buckets.data(), pieces.data());
  });
  std::vector<std::int32_t> labels(4096, 3);
  double loss = 0.0;
  std::int64_t correct = 0;
  for (auto [rows, classes] : {std::pair{128, 10}, {128, 1000}}) {
    const double seconds = best_seconds([&, rows = rows, classes = classes] {
      k.loss.softmax_cross_entropy(lane, rows, classes, data(a), labels.data(), 1.0F, data(c), &loss,
                                   &correct);
    });
    report("softmax cross-entropy " + std::to_string(rows) + " x " + std::to_string(classes), seconds * 1e6,
           "us");
  }
  PoolSpec s;
  s.n = 32, s.in_h = s.in_w = 28, s.channels = 32, s.out_h = s.out_w = 14;
  s.window_h = s.window_w = s.stride_h = s.stride_w = 2;
  const auto pool = k.make.pool(s, 1);
  const std::int64_t xs = s.n * 28 * 28 * 32;
  const Buffer x = floats(xs), y = floats(xs / 4), dx = floats(xs), saved(cpu_device(), pool->saved_bytes());
  report_bandwidth("max pool 2x2 32 x 28 x 28 x 32 forward", xs, 1,
                   [&] { pool->forward(lane, data(x), data(y), saved.data()); });
  report_bandwidth("max pool 2x2 32 x 28 x 28 x 32 backward", xs, 1,
                   [&] { pool->backward(lane, data(y), saved.data(), data(dx)); });
}

}  // namespace

int main(int argc, char** argv) {
  std::string json;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else if (option == "--repeats" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      repeats = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: kernel_bench [--json FILE] [--repeats N]\n");
      return 2;
    }
  }
  const ThreadPool pool(1);  // keeps OpenMP at one thread
  std::printf("%s, %s\n", processor_name().c_str(), primitive_library_version().c_str());
  cpu_kernels().make.dense({1, 1, 1}, 1);  // limits oneDNN's instruction set before sgemm
  report("sgemm 1536 x 1536 x 1536 (peak)", peak_gemm(), "GFLOP/s");
  bench_dense();
  bench_convolutions();
  bench_types();
  bench_conversions(report, best_seconds);
  std::printf("batch normalisation\n");
  for (std::int64_t n : {16, 128}) {
    bench_norm(n * 32 * 32, 16);
    bench_norm(n * 16 * 16, 32);
    bench_norm(n * 8 * 8, 64);
  }
  std::printf("rows, in cache and from memory\n");
  bench_rows(256, 512);
  bench_rows(64, 2048);
  bench_rows(65536, 512);
  bench_rest();
  if (!json.empty() && !write_json(json)) {
    std::fprintf(stderr, "kernel_bench: cannot write %s\n", json.c_str());
    return 1;
  }
  return 0;
}
