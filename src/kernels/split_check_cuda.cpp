// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/split_check_cuda.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/data.h"
#include "core/half.h"
#include "kernels/cuda_launch.h"

namespace lockstep::cuda {

namespace {

constexpr std::int64_t kTail = 64;  // exact in all types

/// Device memory for the check.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) { check(cudaMalloc(&address_, bytes), "cudaMalloc"); }
  ~Scratch() { (void)cudaFree(address_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return address_; }

 private:
  void* address_ = nullptr;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A column-major matrix of op's shape outer x inner whose entries are 1 for the last `ones` of the inner
/// dimension and else 0.
template <typename T>
std::vector<T> operand(std::int64_t outer, std::int64_t inner, std::int64_t ones, bool inner_first) {
  std::vector<T> values(static_cast<std::size_t>(outer * inner));
  for (std::int64_t l = inner - ones; l < inner; ++l)
    for (std::int64_t i = 0; i < outer; ++i)
      values[static_cast<std::size_t>(inner_first ? l + i * inner : i + l * outer)] = from_float<T>(1.0F);
  return values;
}

template <typename From, typename To>
bool is_exact(const ProductShape& s, std::int64_t ones, RunProduct run) {
  const std::vector<From> a = operand<From>(s.m, s.k, ones, s.transposed_a),
                          b = operand<From>(s.n, s.k, ones, !s.transposed_b);
  std::vector<To> d(static_cast<std::size_t>(s.m * s.n));
  const Scratch on_a(a.size() * sizeof(From)), on_b(b.size() * sizeof(From)), on_d(d.size() * sizeof(To)),
      bias(static_cast<std::size_t>(s.m) * sizeof(To));
  const Stream stream;
  check(cudaMemcpy(on_a.get(), a.data(), a.size() * sizeof(From), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(on_b.get(), b.data(), b.size() * sizeof(From), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemset(bias.get(), 0, static_cast<std::size_t>(s.m) * sizeof(To)), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  run(stream.get(), on_a.get(), on_b.get(), s.bias ? bias.get() : nullptr, on_d.get());
  check(cudaStreamSynchronize(stream.get()), "a product of ones");
  check(cudaMemcpy(d.data(), on_d.get(), d.size() * sizeof(To), cudaMemcpyDeviceToHost), "cudaMemcpy");
  const float expected = to_float(from_float<To>(static_cast<float>(ones)));
  return std::all_of(d.begin(), d.end(), [&](To value) { return to_float(value) == expected; });
}

}  // namespace

bool adds_all_parts(const ProductShape& shape, RunProduct run) {
  bool exact = true;
  with_type(shape.from, [&]<typename From>(From) {
    with_type(shape.to, [&]<typename To>(To) {
      exact =
          is_exact<From, To>(shape, shape.k, run) && is_exact<From, To>(shape, std::min(shape.k, kTail), run);
    });
  });
  return exact;
}

int first_exact(std::span<const int> splits, FunctionRef<bool(int index)> adds_all) {
  for (int i = 0; i < static_cast<int>(splits.size()); ++i)
    if (splits[static_cast<std::size_t>(i)] <= 1 || adds_all(i)) return i;
  return -1;
}

}  // namespace lockstep::cuda
