// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Self-attention without its projections, by own kernels for any GPU ("own"), with gradients by those for
// Hopper ("hopper"), and by cuDNN ("cudnn"), whose results are compared. Counted operations: two products in
// the forward pass, five in the backward pass (one recomputes the scores), each halved by a causal mask.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/half.h"
#include "gpu/rate_bench.h"

namespace lockstep {

namespace {

/// Of 16-bit results: each is rounded, and so are the operands of the second product of each pass.
constexpr double kMostDifference = 0.02;

/// The operands of a problem. q, k and v lie side by side, as a projection writes them.
class Operands {
 public:
  Operands(RateBench& bench, const AttentionShape& shape, DType type)
      : type_(type),
        width_(shape.heads * shape.head_size),
        rows_(shape.n * shape.queries),
        qkv_(bench.filled(rows_ * 3 * width_, type)),
        gradient_(bench.filled(rows_ * 3 * width_, type)),
        y_(bench.filled(rows_ * width_, type)),
        dy_(bench.filled(rows_ * width_, type)) {}

  AttentionInputs inputs() const {
    return {.q = qkv(), .k = qkv().offset(width_), .v = qkv().offset(2 * width_)};
  }
  AttentionGradients gradients() const {
    const Data dq(gradient_.data(), type_);
    return {dq, dq.offset(width_), dq.offset(2 * width_)};
  }
  Data y() const { return {y_.data(), type_}; }
  Data dy() const { return {dy_.data(), type_}; }
  /// y, then dq, dk and dv.
  std::vector<double> results(Device& device) const {
    std::vector<double> all = host(device, y(), rows_ * width_);
    const std::vector<double> more = host(device, {gradient_.data(), type_}, 3 * rows_ * width_);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

 private:
  Data qkv() const { return {qkv_.data(), type_}; }
  static std::vector<double> host(Device& device, Data from, std::int64_t count) {
    std::vector<double> values;
    with_type(from.type(), [&]<typename T>(T) {
      std::vector<T> all(static_cast<std::size_t>(count));
      device.copy_to_host(all.data(), from.address(), all.size() * sizeof(T));
      for (const T number : all) values.push_back(static_cast<double>(to_float(number)));
    });
    return values;
  }

  DType type_;
  std::int64_t width_, rows_;
  Buffer qkv_, gradient_, y_, dy_;
};

/// |a - b| / |b|.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]), of_b += b[i] * b[i];
  return std::sqrt(square / of_b);
}

void rates_of(RateBench& bench, AttentionShape shape, DType type) {
  const std::int64_t width = shape.heads * shape.head_size;
  shape.query_stride = shape.key_stride = 3 * width;
  const std::string name = fmt::format("{}, {} heads of {}, {} steps{}", shape.n, shape.heads,
                                       shape.head_size, shape.queries, shape.causal ? "" : ", not causal");
  const double product = static_cast<double>(shape.n * shape.queries) *
                         static_cast<double>(shape.keys * width) * (shape.causal ? 1 : 2);
  const AttentionKernels& attention = bench.kernels().attention;
  const Operands operands(bench, shape, type);
  const Buffer kept(bench.device(), attention.kept_bytes(shape, type));
  std::vector<double> own;
  for (const char* way : {"own", "hopper", "cudnn"}) {
    if (type == DType::f32 && !own.empty()) continue;
    setenv("LOCKSTEP_ATTENTION", way, 1);
    const std::string by = type == DType::f32 ? "" : fmt::format(" by {}", way);
    bench.grow_scratch(attention.scratch_bytes(shape, type, kept.data() != nullptr, true));
    bench.flops("attention forward" + by, name, {type}, 2 * product, [&](const Lane& lane) {
      attention.forward(lane, shape, operands.inputs(), {}, kept.data(), operands.y());
    });
    bench.flops("attention backward" + by, name, {type}, 5 * product, [&](const Lane& lane) {
      attention.backward(lane, shape, operands.inputs(), {}, kept.data(), operands.y(), operands.dy(),
                         operands.gradients());
    });
    const std::vector<double> results = operands.results(bench.device());
    if (own.empty()) own = results;
    const double differs = difference(results, own);
    if (!(differs <= kMostDifference))
      bench.problem("attention" + by, name, name_of(type),
                    fmt::format("differs by {} from own kernels", differs));
  }
}

}  // namespace

void attention_rates(RateBench& bench, DType type) {
  const std::vector<AttentionShape> tiny{
      {.n = 1, .heads = 2, .head_size = 16, .queries = 20, .keys = 20, .causal = true}};
  const std::vector<AttentionShape> gpt{
      {.n = 8, .heads = 12, .head_size = 64, .queries = 1024, .keys = 1024, .causal = true},
      {.n = 8, .heads = 12, .head_size = 64, .queries = 1024, .keys = 1024},
      {.n = 8, .heads = 6, .head_size = 128, .queries = 1024, .keys = 1024, .causal = true},
      {.n = 8, .heads = 24, .head_size = 32, .queries = 1024, .keys = 1024, .causal = true},
      {.n = 64, .heads = 12, .head_size = 64, .queries = 128, .keys = 128, .causal = true},
      {.n = 2, .heads = 12, .head_size = 64, .queries = 4096, .keys = 4096, .causal = true}};
  for (const AttentionShape& shape : bench.tiny() ? tiny : gpt) {
    if (type == DType::f32 && &shape != &gpt.front() && !bench.tiny()) break;
    try {
      rates_of(bench, shape, type);
    } catch (const Error& error) {  // out of memory: further cases may still fit
      bench.problem("attention", fmt::format("{} steps", shape.queries), name_of(type), error.what());
    }
  }
  unsetenv("LOCKSTEP_ATTENTION");
}

}  // namespace lockstep
