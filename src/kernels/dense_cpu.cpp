// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows times a matrix on the CPU: oneDNN's sgemm on the plain weights; bias and relu in one pass over the
// result.
#include <algorithm>

#include "core/error.h"
#include "kernels/factory_cpu.h"
#include "kernels/onednn.h"

namespace lockstep {
namespace {

class CpuDense final : public LinearPrimitive {
 public:
  explicit CpuDense(const DenseSpec& spec) : spec_(spec) {
    LOCKSTEP_CHECK(spec.dtype == DType::f32, "dense of {}", name_of(spec.dtype));
    LOCKSTEP_CHECK(spec.n > 0 && spec.in > 0 && spec.out > 0, "n {} in {} out {}", spec.n, spec.in, spec.out);
    onednn::engine();
  }

  std::size_t scratch_bytes() const override { return 0; }
  std::size_t packed_bytes() const override { return 0; }
  bool same_packing(const LinearPrimitive& other) const override {
    return dynamic_cast<const CpuDense*>(&other) != nullptr;
  }
  void pack(const Lane&, const float*, void*) const override {}

  void forward(const Lane&, const float* x, const float* weights, const void*, const float* bias,
               float* y) const override {
    multiply('N', 'N', spec_.n, spec_.out, spec_.in, x, weights, y);
    if (!spec_.bias && !spec_.relu) return;
    for (std::int64_t i = 0; i < spec_.n; ++i) {
      float* row = y + i * spec_.out;
      if (spec_.bias)
        for (std::int64_t j = 0; j < spec_.out; ++j) row[j] += bias[j];
      if (spec_.relu)
        for (std::int64_t j = 0; j < spec_.out; ++j) row[j] = row[j] < 0.0F ? 0.0F : row[j];
    }
  }

  void backward_data(const Lane&, const float* dy, const float* weights, const void*,
                     float* dx) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    multiply('N', 'T', spec_.n, spec_.in, spec_.out, dy, weights, dx);
  }

  void backward_weights(const Lane&, const float* x, const float* dy, float* dweights) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    multiply('T', 'N', spec_.in, spec_.out, spec_.n, x, dy, dweights);
  }

  double flops() const override {
    return 2.0 * static_cast<double>(spec_.n * spec_.in) * static_cast<double>(spec_.out);
  }

 private:
  /// c (m x n) = a b, all row-major and dense; 'T': that operand lies transposed in memory.
  static void multiply(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       const float* a, const float* b, float* c) {
    onednn::use_one_thread();
    onednn::check(dnnl_sgemm(transpose_a, transpose_b, m, n, k, 1.0F, a, transpose_a == 'N' ? k : m, b,
                             transpose_b == 'N' ? n : k, 0.0F, c, n),
                  "sgemm");
  }

  DenseSpec spec_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_cpu_dense(const DenseSpec& spec, int) {
  return std::make_unique<CpuDense>(spec);
}

}  // namespace lockstep
