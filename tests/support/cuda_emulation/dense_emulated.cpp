// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for dense_cuda.cpp (cuBLASLt) where the GPU is emulated: plain loops, queued on the lane's
// stream.
#include "core/error.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

class EmulatedDense final : public LinearPrimitive {
 public:
  explicit EmulatedDense(const DenseSpec& spec) : s_(spec) {}

  /// Some, so that a lane that brings too little is found.
  std::size_t scratch_bytes() const override { return 4096; }
  std::size_t packed_bytes() const override { return 0; }
  bool same_packing(const LinearPrimitive& other) const override {
    return dynamic_cast<const EmulatedDense*>(&other) != nullptr;
  }
  void pack(const Lane&, const float*, void*) const override {}

  void forward(const Lane& lane, ConstData x, const float* weights, const void*, const float* bias,
               Data y) const override {
    product(lane, s_.n, s_.out, s_.in, x, s_.in, 1, weights, s_.out, 1, s_.bias ? bias : nullptr, y);
    if (s_.relu) elementwise_kernels().relu(lane, s_.n * s_.out, y, y);
  }
  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void*,
                     Data dx) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    product(lane, s_.n, s_.in, s_.out, dy, s_.out, 1, weights, 1, s_.out, nullptr, dx);
  }
  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    product(lane, s_.in, s_.out, s_.n, x, 1, s_.in, dy, s_.out, 1, nullptr, dweights);
  }
  double flops() const override {
    return 2.0 * static_cast<double>(s_.n * s_.in) * static_cast<double>(s_.out);
  }

 private:
  /// c (m x n) = a b + bias; element (i, l) of a is a[i * row_a + l * column_a], b likewise.
  void product(const Lane& lane, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
               std::int64_t row_a, std::int64_t column_a, const float* b, std::int64_t row_b,
               std::int64_t column_b, const float* bias, float* c) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} brings {} bytes of scratch, {} needed",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    const auto addresses = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                           reinterpret_cast<std::uintptr_t>(c) | reinterpret_cast<std::uintptr_t>(bias);
    LOCKSTEP_CHECK(addresses % (s_.aligned ? 16 : sizeof(float)) == 0,
                   "an operand is not aligned as the spec says");
    check(emulation::enqueue(stream_of(lane),
                             [=] {
                               for (std::int64_t i = 0; i < m; ++i)
                                 for (std::int64_t j = 0; j < n; ++j) {
                                   double sum = bias == nullptr ? 0.0 : static_cast<double>(bias[j]);
                                   for (std::int64_t l = 0; l < k; ++l)
                                     sum += static_cast<double>(a[i * row_a + l * column_a]) *
                                            static_cast<double>(b[l * row_b + j * column_b]);
                                   c[i * n + j] = static_cast<float>(sum);
                                 }
                             }),
          "an emulated matrix product");
  }

  DenseSpec s_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_dense(const DenseSpec& spec, int, const CudaOptions&) {
  return std::make_unique<EmulatedDense>(spec);
}
std::string dense_library_version() { return "emulated products"; }

}  // namespace lockstep::cuda
