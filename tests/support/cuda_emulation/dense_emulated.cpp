// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces dense_cuda.cpp (cuBLASLt) on the emulated GPU with plain loops, queued on the lane's stream. As
// there, the weights of 16-bit products are packed, their bias is rounded to y's type in scratch and added to
// the sum, and relu is a separate pass afterwards.
#include "core/error.h"
#include "double_sums.h"
#include "emulated_algorithm.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/linear_cuda.h"

namespace lockstep::cuda {
namespace {

class EmulatedDense final : public LinearPrimitive {
 public:
  explicit EmulatedDense(const DenseSpec& spec) : s_(spec) {
    note_algorithm(fmt::format("a product of {} x {} x {}", spec.n, spec.in, spec.out), emulated_algorithm());
  }

  /// Nonzero, so that a lane with too little scratch is detected.
  std::size_t scratch_bytes() const override {
    return 4096 + static_cast<std::size_t>(s_.out) * sizeof(float);
  }
  std::size_t packed_bytes() const override {
    return packs() ? static_cast<std::size_t>(s_.in * s_.out) * size_in_bytes(s_.dtype) : 0;
  }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const EmulatedDense*>(&other);
    return o != nullptr && o->s_.dtype == s_.dtype && o->packed_bytes() == packed_bytes();
  }
  void pack(const Lane& lane, const float* weights, void* packed) const override {
    if (packs()) elementwise_kernels().convert(lane, s_.in * s_.out, weights, {packed, s_.dtype});
  }

  void forward(const Lane& lane, ConstData x, const float* weights, const void* packed, const float* bias,
               Data y) const override {
    const void* added = s_.bias ? bias : nullptr;
    if (added != nullptr && s_.y_type() != DType::f32) {
      require_scratch(lane);
      elementwise_kernels().convert(lane, s_.out, bias, {lane.scratch, s_.dtype});
      added = lane.scratch;
    }
    product(lane, s_.n, s_.out, s_.in, {address_in(s_.dtype, x), s_.in, 1},
            {used(weights, packed), s_.out, 1}, added, {address_in(s_.y_type(), y), s_.y_type()});
    if (s_.relu) add_bias(lane, s_.n, s_.out, nullptr, true, y);
  }
  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    product(lane, s_.n, s_.in, s_.out, {address_in(s_.dtype, dy), s_.out, 1},
            {used(weights, packed), 1, s_.out}, nullptr, {address_in(s_.dx_type(), dx), s_.dx_type()});
  }
  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    product(lane, s_.in, s_.out, s_.n, {address_in(s_.dtype, x), 1, s_.in},
            {address_in(s_.dtype, dy), s_.out, 1}, nullptr, dweights);
  }
  double flops() const override {
    return 2.0 * static_cast<double>(s_.n * s_.in) * static_cast<double>(s_.out);
  }

 private:
  /// Element (i, l) is at i * row + l * column.
  struct Operand {
    const void* address;
    std::int64_t row, column;
  };
  bool packs() const { return s_.dtype != DType::f32; }
  const void* used(const float* weights, const void* packed) const { return packs() ? packed : weights; }

  void require_scratch(const Lane& lane) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes());
  }

  /// c (m x n) = a b + bias. a and b have the spec's type; the bias has c's type.
  void product(const Lane& lane, std::int64_t m, std::int64_t n, std::int64_t k, const Operand& a,
               const Operand& b, const void* bias, Data c) const {
    require_scratch(lane);
    for (const auto& [address, type] : {std::pair(a.address, s_.dtype),
                                        {b.address, s_.dtype},
                                        {static_cast<const void*>(c.address()), c.type()},
                                        {bias, c.type()}})
      LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(address) % (s_.aligned ? 16 : size_in_bytes(type)) == 0,
                     "an operand is not aligned as the spec requires");
    with_type(s_.dtype, [&]<typename From>(From) {
      with_type(c.type(), [&]<typename To>(To) {
        check(emulation::enqueue(stream_of(lane), [=] { multiply<From>(m, n, k, a, b, bias, c.as<To>()); }),
              "an emulated matrix product");
      });
    });
  }

  template <typename From, typename To>
  static void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Operand& a, const Operand& b,
                       const void* bias, To* c) {
    const auto* added = static_cast<const To*>(bias);
    const auto* from_a = static_cast<const From*>(a.address);
    const auto* from_b = static_cast<const From*>(b.address);
    Doubles rows_of_b(static_cast<std::size_t>(k * n)), sums(static_cast<std::size_t>(n));
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j)
        rows_of_b[static_cast<std::size_t>(l * n + j)] =
            static_cast<double>(to_float(from_b[l * b.row + j * b.column]));
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j)
        sums[static_cast<std::size_t>(j)] = added == nullptr ? 0.0 : static_cast<double>(to_float(added[j]));
      for (std::int64_t l = 0; l < k; ++l)
        add_product(static_cast<double>(to_float(from_a[i * a.row + l * a.column])), rows_of_b.data() + l * n,
                    n, sums.data());
      for (std::int64_t j = 0; j < n; ++j)
        c[i * n + j] = from_float<To>(static_cast<float>(sums[static_cast<std::size_t>(j)]));
    }
  }

  DenseSpec s_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_dense(const DenseSpec& spec, int, const CudaOptions&) {
  return std::make_unique<EmulatedDense>(spec);
}
std::string dense_library_version() { return "emulated products"; }

}  // namespace lockstep::cuda
