// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces cublaslt_cuda.cpp on the emulated GPU: products are plain loops over column-major matrices, queued
// on the lane's stream.
#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "double_sums.h"
#include "emulated_engines.h"
#include "kernels/cublaslt_cuda.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/plan_check_cuda.h"

namespace lockstep::cuda {
namespace {

using emulation::Defect;

template <typename From, typename To>
void multiply(Defect defect, const ProductShape& s, const void* a, const void* b, const void* bias, void* d) {
  const auto* const from_a = static_cast<const From*>(a);
  const auto* const from_b = static_cast<const From*>(b);
  const auto* const added = static_cast<const To*>(bias);
  auto* const to = static_cast<To*>(d);
  const std::int64_t inner = defect == Defect::lost_part ? s.k - (s.k + 7) / 8 : s.k;
  Doubles columns(static_cast<std::size_t>(inner * s.m)), sums(static_cast<std::size_t>(s.m));
  for (std::int64_t l = 0; l < inner; ++l)
    for (std::int64_t i = 0; i < s.m; ++i)
      columns[static_cast<std::size_t>(l * s.m + i)] =
          static_cast<double>(to_float(from_a[s.transposed_a ? l + i * s.k : i + l * s.m]));
  for (std::int64_t j = 0; j < s.n; ++j) {
    if (defect == Defect::unwritten && j == s.n - 1) continue;
    for (std::int64_t i = 0; i < s.m; ++i)
      sums[static_cast<std::size_t>(i)] =
          added == nullptr
              ? 0.0
              : static_cast<double>(to_float(added[defect == Defect::wrong_bias ? s.m - 1 - i : i]));
    for (std::int64_t l = 0; l < inner; ++l)
      add_product(static_cast<double>(to_float(from_b[s.transposed_b ? j + l * s.n : l + j * s.k])),
                  columns.data() + l * s.m, s.m, sums.data());
    for (std::int64_t i = 0; i < s.m; ++i) {
      double sum = sums[static_cast<std::size_t>(i)];
      if (defect == Defect::edge_column && j == s.n - 1) sum += 1;
      if (defect == Defect::rounded) sum *= 1 + 0x1p-20;
      if (defect == Defect::coarse) sum = coarse(sum);
      if (defect == Defect::accumulates) sum += static_cast<double>(to_float(to[i + j * s.m]));
      to[i + j * s.m] = from_float<To>(static_cast<float>(sum));
    }
  }
}

void run_loops(const emulation::Engine& engine, const ProductShape& shape, cudaStream_t stream, const void* a,
               const void* b, const void* bias, void* d) {
  // cublasLtMatmul refuses an address that is less aligned than the algorithm was promised, or than a number.
  const auto require_alignment = [&](const void* operand, DType type) {
    const std::size_t alignment = std::max(std::size_t{shape.alignment}, size_in_bytes(type));
    LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(operand) % alignment == 0,
                   "an operand is not aligned to {} bytes", alignment);
  };
  require_alignment(a, shape.from);
  require_alignment(b, shape.from);
  require_alignment(d, shape.to);
  require_alignment(bias, shape.to);
  LOCKSTEP_CHECK((bias != nullptr) == shape.bias, "a bias that the shape does not have, or none");
  with_type(shape.from, [&]<typename From>(From) {
    with_type(shape.to, [&]<typename To>(To) {
      check(emulation::enqueue(stream,
                               [=] {
                                 emulation::pretend(engine);
                                 multiply<From, To>(engine.defect, shape, a, b, bias, d);
                               }),
            "an emulated product");
    });
  });
}

/// The engine's RunProduct.
auto run_of(const emulation::Engine& engine, const ProductShape& shape) {
  return [&](cudaStream_t stream, const void* a, const void* b, const void* bias, void* d, void*) {
    run_loops(engine, shape, stream, a, b, bias, d);
  };
}

/// Once per shape and list: tests change it.
emulation::Engine kept_engine_of(const ProductShape& shape, bool check) {
  static std::mutex mutex;
  static std::map<std::tuple<bool, std::string, decltype(shape.key())>, emulation::Engine> engines;
  std::string list;
  for (const emulation::Engine& engine : emulation::engines()) list += engine.name + ",";
  const std::lock_guard lock(mutex);
  const std::string library = dense_library_version(), what = shape.describe();
  const auto error = [&](const emulation::Engine& engine) {
    return error_of_plan(shape, 0, run_of(engine, shape));
  };
  const std::string measured = emulation::measured_engine(
      library, what, check, error, [&](const emulation::Engine& engine, double best) {
        return seconds_of_plan(shape, 0, best, run_of(engine, shape));
      });
  const auto key = std::tuple(check, list + measured, shape.key());
  if (const auto found = engines.find(key); found != engines.end()) return found->second;
  return engines.emplace(key, emulation::choose_engine(library, what, measured, check, error)).first->second;
}

class EmulatedProduct final : public Product {
 public:
  EmulatedProduct(const ProductShape& shape, int lanes, bool check)
      : lanes_(lanes), shape_(shape), engine_(kept_engine_of(shape, check)) {
    note_algorithm(shape.describe(), engine_.name);
  }

  /// Nonzero, so that a lane with too little scratch is detected.
  std::size_t scratch_bytes() const override { return 4096; }

  void run(const Lane& lane, const void* a, const void* b, const void* bias, void* d) const override {
    LOCKSTEP_CHECK(lane.index >= 0 && lane.index < lanes_, "lane {} of {}", lane.index, lanes_);
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    run_loops(engine_, shape_, stream_of(lane), a, b, bias, d);
  }

 private:
  int lanes_;
  ProductShape shape_;
  emulation::Engine engine_;
};

}  // namespace

std::unique_ptr<Product> make_product(const ProductShape& shape, int lanes, bool check) {
  return std::make_unique<EmulatedProduct>(shape, lanes, check);
}
std::string dense_library_version() { return "emulated products" + emulation::version(); }

}  // namespace lockstep::cuda
