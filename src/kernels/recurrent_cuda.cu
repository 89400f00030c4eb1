// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers on a GPU: a step's cells alone, one thread per sample and unit, or together with the
// step's product (recurrent_product_cuda.h).
//
// The limits of fuses() are arithmetic: docs/gpu_internals.md, "Recurrent layers".
#include "kernels/factory_cuda.h"
#include "kernels/recurrent_product_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kMostFused = std::int64_t{1} << 25, kMostFusedHalf = std::int64_t{1} << 26;
constexpr std::int64_t kMostUnits = 1024;  ///< an LSTM's matrix then has 16 MiB in float32
constexpr std::int64_t kFusedUnits = 32;   ///< units are a multiple: each part of a product is whole pieces

/// Launches the cells of a step whose terms are computed or zeros.
template <typename Op>
void run_cells(const Lane& lane, const char* name, const RecurrentStep& s, const float* terms, const Op& op) {
  const std::int64_t count = s.n * s.units;
  if (count <= 0) return;
  launch(lane, name, elementwise_kernel<Narrow, CellOnly<Op>>, blocks_for(count), kThreads, count,
         CellOnly<Op>{op, s, terms});
}

template <int kLefts, bool kBackward, typename T, typename Op>
void run_step(const Lane& lane, const char* name, const RecurrentStep& s, const WarpProducts<T>& products,
              const Op& op) {
  if (s.n <= 0) return;
  for (const WarpProduct<T>& product : products.of)
    require(product.depth == 0 || (reinterpret_cast<std::uintptr_t>(product.left) % sizeof(Piece) == 0 &&
                                   reinterpret_cast<std::uintptr_t>(product.right) % sizeof(Piece) == 0),
            "operands of a recurrent step begin at multiples of 16 bytes");
  const dim3 grid(static_cast<unsigned int>(s.units / kTileUnits),
                  static_cast<unsigned int>((s.n + kTileRows - 1) / kTileRows));
  launch(lane, name, recurrent_step_kernel<T, kLefts, kBackward, Op>, grid, kStepThreads, products, s, op);
}

/// The type of a call's data. Null outputs may have another one.
DType type_of(const RecurrentTerm& term, DType otherwise) {
  return term.is_product() ? term.factors[0].left.type() : otherwise;
}

/// Warp w multiplies h with gate w % gates of the matrix, for part w / gates of the inner index.
template <typename T>
WarpProducts<T> forward_products(const RecurrentTerm::Factors& factors, int units, int gates) {
  const int parts = kStepWarps / gates, depth = units / parts, columns = gates * units;
  WarpProducts<T> products;
  for (int w = 0; w < kStepWarps; ++w) {
    const int gate = w % gates, part = w / gates;
    products.of[w] = {factors.left.as<T>() + part * depth,
                      factors.matrix.as<T>() + std::int64_t{part} * depth * columns + gate * units, units,
                      columns, depth};
  }
  return products;
}
/// Warp w multiplies a quarter of the gradient's columns with the transposed matrix.
template <typename T>
WarpProducts<T> backward_products(const RecurrentTerm::Factors& factors, int units, int gates) {
  const int columns = gates * units, depth = columns / kStepWarps;
  WarpProducts<T> products;
  for (int w = 0; w < kStepWarps; ++w)
    products.of[w] = {factors.left.as<T>() + w * depth, factors.matrix.as<T>() + w * depth, columns, columns,
                      depth};
  return products;
}

class Recurrent final : public RecurrentKernels {
 public:
  bool fuses(DType type, std::int64_t n, std::int64_t units, std::int64_t gates) const override {
    return units % kFusedUnits == 0 && units <= kMostUnits &&
           n * units * units * gates <= (type == DType::f32 ? kMostFused : kMostFusedHalf);
  }

  void lstm_forward(const Lane& lane, const RecurrentStep& s, float* gates, const RecurrentTerm& recurrent,
                    float forget_bias, const float* c_before, ConstData h_before, float* c, Data h,
                    StridedRows<Data> y) const override {
    with_type(h.type(), [&]<typename T>(T) {
      const LstmForward<T> op{
          s, gates, forget_bias, c_before, h_before.as<T>(), c, h.as<T>(), {y.data.as<T>(), y.stride}};
      if (recurrent.is_product())
        run_step<1, false>(lane, "lstm_forward_step", s,
                           forward_products<T>(recurrent.factors[0], narrow(s.units), 4), op);
      else
        run_cells(lane, "lstm_forward", s, recurrent.sum, op);
    });
  }

  void lstm_backward(const Lane& lane, const RecurrentStep& s, const float* gates, Data dgates,
                     const float* c_before, const float* c, const RecurrentTerm& recurrent, float* dh,
                     float* dc, StridedRows<ConstData> dy) const override {
    with_type(dgates.type(), [&]<typename T>(T) {
      const LstmBackward<T> op{s, gates, dgates.as<T>(), c_before, c, dh, dc, {dy.data.as<T>(), dy.stride}};
      if (recurrent.is_product())
        run_step<4, true>(lane, "lstm_backward_step", s,
                          backward_products<T>(recurrent.factors[0], narrow(s.units), 4), op);
      else
        run_cells(lane, "lstm_backward", s, recurrent.sum, op);
    });
  }

  void gru_gates(const Lane& lane, const RecurrentStep& s, float* gates, const RecurrentTerm& recurrent,
                 ConstData h, Data reset_h) const override {
    with_type(type_of(recurrent, reset_h.type()), [&]<typename T>(T) {
      T* wanted = reset_h.as<T>();
      const GruGates<T> op{s, gates, wanted == nullptr ? nullptr : h.as<T>(), wanted};
      if (recurrent.is_product())
        run_step<2, false>(lane, "gru_gates_step", s,
                           forward_products<T>(recurrent.factors[0], narrow(s.units), 2), op);
      else
        run_cells(lane, "gru_gates", s, recurrent.sum, op);
    });
  }

  void gru_output(const Lane& lane, const RecurrentStep& s, const float* gates, float* candidate,
                  const RecurrentTerm& recurrent, bool reset_after, const float* h_before, float* h,
                  Data rounded_h, StridedRows<Data> y) const override {
    with_type(type_of(recurrent, y.data == nullptr ? rounded_h.type() : y.data.type()), [&]<typename T>(T) {
      const GruOutput<T> op{s,        gates, candidate,         reset_after,
                            h_before, h,     rounded_h.as<T>(), {y.data.as<T>(), y.stride}};
      if (recurrent.is_product())
        run_step<4, false>(lane, "gru_output_step", s,
                           forward_products<T>(recurrent.factors[0], narrow(s.units), 1), op);
      else
        run_cells(lane, "gru_output", s, recurrent.sum, op);
    });
  }

  void gru_reset_after(const Lane& lane, const RecurrentStep& s, float* gates, const RecurrentTerm& recurrent,
                       float* candidate, const RecurrentTerm& product, const float* product_bias,
                       float* reset_product, const float* h_before, float* h, Data rounded_h,
                       StridedRows<Data> y) const override {
    if (product.sum != nullptr) {
      gru_gates(lane, s, gates, recurrent, nullptr, nullptr);
      gru_output(lane, s, gates, candidate, product, true, h_before, h, rounded_h, y);
      return;
    }
    with_type(type_of(recurrent, y.data == nullptr ? rounded_h.type() : y.data.type()), [&]<typename T>(T) {
      const GruResetAfter<T> op{
          gates,
          {s, gates, candidate, true, h_before, h, rounded_h.as<T>(), {y.data.as<T>(), y.stride}},
          product_bias,
          reset_product};
      if (!recurrent.is_product()) return run_cells(lane, "gru_reset_after", s, recurrent.computed(), op);
      const int units = narrow(s.units);
      WarpProducts<T> products = forward_products<T>(recurrent.factors[0], units, 2);
      for (int w = 0; w < 2; ++w) products.of[w].depth = units;
      products.of[2] = forward_products<T>(product.factors[0], units, 1).of[0];
      products.of[2].depth = units;
      products.of[3] = {};
      run_step<1, false>(lane, "gru_reset_after_step", s, products, op);
    });
  }

  void gru_output_backward(const Lane& lane, const RecurrentStep& s, const GruStep& of,
                           const RecurrentTerm& recurrent, const float* through_reset, float* dh,
                           StridedRows<ConstData> dy) const override {
    with_type(of.dgates.type(), [&]<typename T>(T) {
      const GruOutputBackward<T> op{s,
                                    of.gates,
                                    of.candidate,
                                    of.reset_product,
                                    of.h_before,
                                    of.dgates.as<T>(),
                                    of.dcandidate.as<T>(),
                                    of.reset_product == nullptr ? nullptr : of.dreset_product.as<T>(),
                                    through_reset,
                                    dh,
                                    {dy.data.as<T>(), dy.stride}};
      if (!recurrent.is_product()) return run_cells(lane, "gru_output_backward", s, recurrent.sum, op);
      const int units = narrow(s.units);
      WarpProducts<T> products = backward_products<T>(recurrent.factors[0], units, 2);
      if (recurrent.factors[1].left != nullptr) {
        for (int w = 0; w < 2; ++w)
          products.of[w] = {recurrent.factors[0].left.as<T>() + w * units,
                            recurrent.factors[0].matrix.as<T>() + w * units, 2 * units, 2 * units, units};
        products.of[2] = {recurrent.factors[1].left.as<T>(), recurrent.factors[1].matrix.as<T>(), units,
                          units, units};
        products.of[3] = {};
      }
      run_step<4, true>(lane, "gru_output_backward_step", s, products, op);
    });
  }

  void gru_gates_backward(const Lane& lane, const RecurrentStep& s, const float* gates, ConstData h,
                          const RecurrentTerm& dreset_h, Data dgates, float* dh) const override {
    with_type(dgates.type(), [&]<typename T>(T) {
      const GruGatesBackward<T> op{s, gates, h.as<T>(), dgates.as<T>(), dh};
      if (dreset_h.is_product())
        run_step<4, true>(lane, "gru_gates_backward_step", s,
                          backward_products<T>(dreset_h.factors[0], narrow(s.units), 1), op);
      else
        run_cells(lane, "gru_gates_backward", s, dreset_h.sum, op);
    });
  }

 private:
  static int narrow(std::int64_t units) { return static_cast<int>(units); }  // fuses() limits it
};

}  // namespace

const RecurrentKernels& recurrent_kernels() {
  static const Recurrent kernels;
  return kernels;
}

}  // namespace lockstep::cuda
