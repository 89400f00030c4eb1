// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/kernels/clip_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaClip : public GpuTest {};

const ClipKernels& cpu() { return cpu_kernels().clip; }

/// Structs in device memory, as 64-bit integers.
template <typename T>
OnDevice<std::int64_t> words_of(const std::vector<T>& values) {
  static_assert(sizeof(T) % sizeof(std::int64_t) == 0);
  std::vector<std::int64_t> words(values.size() * sizeof(T) / sizeof(std::int64_t));
  if (!words.empty()) std::memcpy(words.data(), values.data(), values.size() * sizeof(T));
  return OnDevice<std::int64_t>(words);
}
template <typename T>
const T* as(const OnDevice<std::int64_t>& words) {
  return reinterpret_cast<const T*>(words.data());
}

std::vector<double> numbers_of(const ClipTotals& totals) { return {totals.norm, totals.clipped}; }

/// Gradients of different magnitudes, finite and not.
std::vector<Floats> gradients(const ClipCase& c) {
  std::vector<Floats> list;
  for (const double scale : {1.0, 3.4e38, 1e-44})
    list.emplace_back(random_values(c.elements, 1, -scale, scale));
  for (const float broken : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    list.emplace_back(random_values(c.elements, 2));
    list.back()[static_cast<std::size_t>(c.offsets[8]) + 4900] = broken;
  }
  return list;
}

TEST_F(CudaClip, NormsAndClippedGradientsHaveTheBitsOfTheCpu) {
  const ClipCase c(kClipCounts, 3.0);
  const OnDevice<std::int64_t> blocks = words_of(c.blocks), variables = words_of(c.variables);
  for (const Floats& g : gradients(c))
    for (const ClipNorms norms :
         {ClipNorms{}, ClipNorms{ClipNorms::Which::all, 0.7}, ClipNorms{ClipNorms::Which::all, 1e50},
          ClipNorms{ClipNorms::Which::each, 0}})
      for (const int shift : {0, 1}) {
        const std::string what =
            fmt::format("norms {} limit {} first {}", static_cast<int>(norms.which), norms.limit, g[0]);
        ClipNumbers expected;
        expected.sums.resize(c.blocks.size());
        expected.squares.resize(c.variables.size());
        expected.factors.resize(c.variables.size(), 1.0);
        const Floats clipped = g.copy();
        cpu().square_blocks(TestLane(), c.num_blocks(), c.blocks.data(), g.data(), expected.sums.data());
        cpu().factors(TestLane(), c.num_variables(), c.variables.data(), expected.sums.data(), norms,
                      expected.squares.data(), expected.factors.data(), &expected.totals);
        cpu().clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), {expected.factors.data()},
                          clipped.data());

        const CudaLane lane;
        const DeviceFloats dg(g.values(), shift);
        const DeviceDoubles sums(c.num_blocks()), squares(c.num_variables()),
            factors(Values(c.variables.size(), 1.0)), totals(2);
        gpu().clip.square_blocks(lane, c.num_blocks(), as<ClipBlock>(blocks), dg.data(), sums.data());
        gpu().clip.factors(lane, c.num_variables(), as<ClipVariable>(variables), sums.data(), norms,
                           squares.data(), factors.data(), reinterpret_cast<ClipTotals*>(totals.data()));
        gpu().clip.clip_blocks(lane, c.num_blocks(), as<ClipBlock>(blocks), {factors.data()}, dg.data());
        expect_same(sums.host(), expected.sums, "sums, " + what);
        expect_same(squares.host(), expected.squares, "squares, " + what);
        expect_same(factors.host(), expected.factors, "factors, " + what);
        expect_same(totals.host(), numbers_of(expected.totals), "totals, " + what);
        expect_same(dg.host(), host_of(clipped), "gradients, " + what);
      }
}

TEST_F(CudaClip, RowsHaveTheBitsOfTheCpu) {
  for (const TableShape& shape : kTableShapes)
    for (const int shift : {0, 1}) {
      const SomeRows some(shape.rows, shape.width, shape.share, 21);
      auto count = static_cast<std::int32_t>(some.rows.size());
      std::vector<std::int32_t> rows = some.rows;
      const ClipCase c({shape.rows * shape.width});
      for (const auto& [first, last] :
           {std::pair(std::int64_t{0}, shape.rows), std::pair(std::int64_t{3}, shape.rows),
            std::pair(std::int64_t{2}, std::int64_t{count / 2})}) {
        const std::string what = fmt::format("{}x{}, {} to {}", shape.rows, shape.width, first, last);
        const Floats values(some.values);
        const SparseRows gradient{&count, rows.data(), values.data()};
        std::vector<double> sums(c.blocks.size(), -1.0);
        const double factor = 1.0 / 3;
        cpu().square_rows(TestLane(), gradient, first, last, shape.width, sums.data());
        cpu().clip_rows(TestLane(), gradient, first, last, shape.width, 0, {&factor});

        const CudaLane lane;
        const OnDevice<std::int32_t> dcount(std::vector<std::int32_t>{count}), drows(some.rows);
        const DeviceFloats dvalues(some.values, shift);
        const DeviceDoubles dsums(Values(c.blocks.size(), -1.0)), dfactor(Values{factor});
        const SparseRows dgradient{dcount.data(), drows.data(), dvalues.data()};
        gpu().clip.square_rows(lane, dgradient, first, last, shape.width, dsums.data());
        gpu().clip.clip_rows(lane, dgradient, first, last, shape.width, 0, {dfactor.data()});
        expect_same(dsums.host(), sums, "sums of " + what);
        expect_same(dvalues.host(), host_of(values), "values of " + what);
      }
    }
}

TEST_F(CudaClip, ValuesHaveTheBitsOfTheCpu) {
  const ClipCase c(kClipCounts);
  const OnDevice<std::int64_t> blocks = words_of(c.blocks);
  const Clipping clipping{nullptr, -0.25F, 0.5F};
  for (const Floats& g : gradients(c))
    for (const int shift : {0, 1}) {
      const Floats clipped = g.copy();
      cpu().clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), clipping, clipped.data());
      const CudaLane lane;
      const DeviceFloats dg(g.values(), shift);
      gpu().clip.clip_blocks(lane, c.num_blocks(), as<ClipBlock>(blocks), clipping, dg.data());
      expect_same(dg.host(), host_of(clipped), fmt::format("shift {}", shift));
    }
}

}  // namespace
}  // namespace lockstep
