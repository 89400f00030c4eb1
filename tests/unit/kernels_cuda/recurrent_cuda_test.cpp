// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent.h"

#include <cmath>
#include <memory>

#include "kernels/kernel_table.h"
#include "unit/kernels/recurrent_steps.h"
#include "unit/kernels_cuda/stored_cuda_testing.h"

namespace lockstep {
namespace {

class CudaRecurrent : public GpuTest {};

template <typename T>
struct OnGpu : OnDevice<T> {
  explicit OnGpu(const Values& values) : OnDevice<T>(Stored<T>(values).host()) {}
};

TEST_F(CudaRecurrent, CellsHaveTheBitsOfTheCpu) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (const CellCase& test : cell_cases()) {
      const Matrices expected =
          cell_step_in<Stored>(type, cpu_kernels().recurrent, TestLane(), test,
                               [](const auto& memory) { return host_of(memory.widened()); });
      const CudaLane lane;
      const Matrices written = cell_step_in<OnGpu>(type, gpu().recurrent, lane, test,
                                                   [](const auto& memory) { return widened(memory.host()); });
      for (std::size_t i = 0; i < written.size(); ++i)
        expect_same(written[i], expected[i],
                    fmt::format("{} {}, matrix {}", name_of(type), describe(test), i));
    }
}

/// A step whose products are computed by the kernel.
struct StepCase {
  CellKind kind;
  std::int64_t n, units;
  bool lengths;
  std::string text() const {
    return fmt::format("cell {}, {} samples, {} units, lengths {}", static_cast<int>(kind), n, units,
                       lengths);
  }
};

/// left (n x depth) times `width` columns of a matrix, whose element (k, j) is matrix[k * row + j * column].
/// A sum is that of `parts` equal parts of the inner index, along a tree. Each part is a chain of fused
/// multiply-adds.
Values product_of(const Values& left, std::int64_t n, std::int64_t width, const Values& matrix,
                  std::int64_t row, std::int64_t column, std::size_t parts) {
  const std::size_t samples = static_cast<std::size_t>(n), depth = left.size() / samples;
  Values y;
  for (std::size_t s = 0; s < samples; ++s)
    for (std::int64_t j = 0; j < width; ++j) {
      std::vector<float> sums(parts, 0.0F);
      for (std::size_t k = 0; k < depth; ++k) {
        float& sum = sums[k / (depth / parts)];
        sum = std::fma(static_cast<float>(left[s * depth + k]),
                       static_cast<float>(
                           matrix[k * static_cast<std::size_t>(row) + static_cast<std::size_t>(j * column)]),
                       sum);
      }
      y.push_back(parts == 1   ? sums[0]
                  : parts == 2 ? sums[0] + sums[1]
                               : (sums[0] + sums[1]) + (sums[2] + sums[3]));
    }
  return y;
}
Values forward_product(const Values& h, const StepCase& test, const Values& matrix, std::int64_t gates,
                       std::size_t parts) {
  return product_of(h, test.n, gates * test.units, matrix, gates * test.units, 1, parts);
}
Values backward_product(const Values& dgates, const StepCase& test, const Values& matrix, std::int64_t gates,
                        std::size_t parts) {
  return product_of(dgates, test.n, test.units, matrix, 1, gates * test.units, parts);
}

/// Runs a step forward and backward, and returns all that it writes. With `fused`, terms are factors; else
/// they are the products in the documented order.
template <typename T, template <typename> class Memory, typename Read>
Matrices step_in(const RecurrentKernels& kernels, const Lane& lane, const StepCase& test, bool fused,
                 const Read& read) {
  const std::int64_t n = test.n, u = test.units, count = n * u;
  const auto numbers = [](std::int64_t size, std::uint32_t stream, double most = 1) {
    Values values = random_values(size, stream, -most, most);
    for (double& value : values) value = to_float(from_float<T>(static_cast<float>(value)));
    return values;
  };
  const auto floats = [&](std::int64_t size, std::uint32_t stream) {
    return Memory<float>(random_values(size, stream, -1, 1));
  };
  Values some_lengths;
  for (std::int64_t row = 0; row < n; ++row) some_lengths.push_back(static_cast<double>(row % 5));
  const Memory<float> lengths(some_lengths);
  const RecurrentStep step{n, u, kCellStep, test.lengths ? lengths.data() : nullptr};
  std::vector<std::unique_ptr<Memory<float>>> sums;
  std::vector<std::unique_ptr<Memory<T>>> operands;
  const auto term = [&](const Values& left, const Values& matrix, const Values& product) -> RecurrentTerm {
    if (!fused) return sums.emplace_back(std::make_unique<Memory<float>>(product))->data();
    const T* from = operands.emplace_back(std::make_unique<Memory<T>>(left))->data();
    return RecurrentTerm::Factors{from, operands.emplace_back(std::make_unique<Memory<T>>(matrix))->data()};
  };
  const Memory<float> c = floats(count, 1), dh = floats(count, 2), dc = floats(count, 3),
                      before = floats(count, 4), bias = floats(u, 5);
  const Values state = numbers(count, 6);
  const Memory<T> h_before(state), y = Memory<T>(numbers(count, 7)), dy = Memory<T>(numbers(count, 8));
  if (test.kind == CellKind::lstm) {
    const Values matrix = numbers(4 * u * u, 10, 0.3), later = numbers(4 * count, 11);
    const Memory<float> gates = floats(4 * count, 12);
    const Memory<T> h(numbers(count, 13)), dgates(numbers(4 * count, 14));
    kernels.lstm_forward(lane, step, gates.data(),
                         term(state, matrix, forward_product(state, test, matrix, 4, 1)), 1.0F, before.data(),
                         h_before.data(), c.data(), h.data(), {y.data(), u});
    Matrices all{read(gates), read(c), read(h), read(y)};
    kernels.lstm_backward(lane, step, gates.data(), dgates.data(), before.data(), c.data(),
                          term(later, matrix, backward_product(later, test, matrix, 4, 4)), dh.data(),
                          dc.data(), {dy.data(), u});
    for (auto& matrix_of : {read(dgates), read(dh), read(dc)}) all.push_back(matrix_of);
    return all;
  }
  const Values gates_matrix = numbers(2 * u * u, 20, 0.3), matrix = numbers(u * u, 21, 0.3),
               dgates_later = numbers(2 * count, 22), dproduct_later = numbers(count, 23),
               reset_values = numbers(count, 24), dcandidate_values = numbers(count, 25);
  const Memory<float> gates = floats(2 * count, 26), candidate = floats(count, 27), h = floats(count, 28),
                      through = floats(count, 29);
  const Memory<T> dgates(numbers(2 * count, 30)), dcandidate(dcandidate_values), dproduct(numbers(count, 31)),
      reset_h(reset_values), rounded_h(numbers(count, 32));
  Matrices all;
  if (test.kind == CellKind::gru_reset_after) {
    Values product = forward_product(state, test, matrix, 1, 1);
    const Values biases = random_values(u, 5, -1, 1);
    for (std::size_t i = 0; i < product.size(); ++i)
      product[i] = static_cast<float>(product[i]) + static_cast<float>(biases[i % biases.size()]);
    const Memory<float> reset_product(product);
    kernels.gru_reset_after(
        lane, step, gates.data(), term(state, gates_matrix, forward_product(state, test, gates_matrix, 2, 1)),
        candidate.data(), fused ? term(state, matrix, {}) : RecurrentTerm(reset_product.data()), bias.data(),
        reset_product.data(), before.data(), h.data(), rounded_h.data(), {y.data(), u});
    for (auto* memory : {&gates, &candidate, &reset_product, &h}) all.push_back(read(*memory));
    for (auto* memory : {&y, &rounded_h}) all.push_back(read(*memory));
    Values sum = product_of(dgates_later, n, u, gates_matrix, 1, 2 * u, 2);
    const Values second = backward_product(dproduct_later, test, matrix, 1, 1);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = static_cast<float>(sum[i]) + static_cast<float>(second[i]);
    RecurrentTerm recurrent = term(dgates_later, gates_matrix, sum);
    if (fused) recurrent.factors[1] = term(dproduct_later, matrix, {}).factors[0];
    kernels.gru_output_backward(lane, step,
                                {.gates = gates.data(),
                                 .candidate = candidate.data(),
                                 .reset_product = reset_product.data(),
                                 .h_before = before.data(),
                                 .dgates = dgates.data(),
                                 .dcandidate = dcandidate.data(),
                                 .dreset_product = dproduct.data()},
                                recurrent, nullptr, dh.data(), {dy.data(), u});
    for (auto* memory : {&dgates, &dcandidate, &dproduct}) all.push_back(read(*memory));
    all.push_back(read(dh));
    return all;
  }
  kernels.gru_gates(lane, step, gates.data(),
                    term(state, gates_matrix, forward_product(state, test, gates_matrix, 2, 2)),
                    h_before.data(), reset_h.data());
  all = {read(gates), read(reset_h)};
  kernels.gru_output(lane, step, gates.data(), candidate.data(),
                     term(reset_values, matrix, forward_product(reset_values, test, matrix, 1, 4)), false,
                     before.data(), h.data(), rounded_h.data(), {y.data(), u});
  for (auto* memory : {&candidate, &h}) all.push_back(read(*memory));
  for (auto* memory : {&y, &rounded_h}) all.push_back(read(*memory));
  kernels.gru_output_backward(
      lane, step,
      {.gates = gates.data(),
       .candidate = candidate.data(),
       .reset_product = nullptr,
       .h_before = before.data(),
       .dgates = dgates.data(),
       .dcandidate = dcandidate.data(),
       .dreset_product = nullptr},
      term(dgates_later, gates_matrix, backward_product(dgates_later, test, gates_matrix, 2, 4)),
      through.data(), dh.data(), {dy.data(), u});
  all.push_back(read(dh));
  kernels.gru_gates_backward(
      lane, step, gates.data(), h_before.data(),
      term(dcandidate_values, matrix, backward_product(dcandidate_values, test, matrix, 1, 4)), dgates.data(),
      through.data());
  for (auto* memory : {&dgates, &dcandidate}) all.push_back(read(*memory));
  all.push_back(read(through));
  return all;
}

std::vector<StepCase> step_cases() {
  std::vector<StepCase> cases;
  for (const CellKind kind : {CellKind::lstm, CellKind::gru, CellKind::gru_reset_after})
    for (const auto& [n, units] : {std::pair{1, 32}, {16, 96}, {19, 64}, {33, 160}})
      for (const bool lengths : {false, true}) cases.push_back({kind, n, units, lengths});
  return cases;
}

/// A float32 product is that of fused multiply-adds in a fixed order. The tensor cores' order within 16 terms
/// is not known, so 16-bit results are compared within a few roundings.
TEST_F(CudaRecurrent, StepsWithProductsAreTheCellsOfOrderedProducts) {
  for (const StepCase& test : step_cases())
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      with_type(type, [&]<typename T>(T) {
        const std::string what = fmt::format("{} {}", name_of(type), test.text());
        ASSERT_TRUE(gpu().recurrent.fuses(type, test.n, test.units, 4)) << what;
        const Matrices expected =
            step_in<T, Stored>(cpu_kernels().recurrent, TestLane(), test, false,
                               [](const auto& memory) { return host_of(memory.widened()); });
        const CudaLane lane;
        const Matrices written = step_in<T, OnGpu>(gpu().recurrent, lane, test, true,
                                                   [](const auto& memory) { return widened(memory.host()); });
        ASSERT_EQ(written.size(), expected.size());
        for (std::size_t i = 0; i < written.size(); ++i) {
          if (type == DType::f32) {
            expect_same(written[i], expected[i], fmt::format("{}, matrix {}", what, i));
            continue;
          }
          ASSERT_EQ(written[i].size(), expected[i].size());
          for (std::size_t k = 0; k < written[i].size(); ++k)
            ASSERT_NEAR(written[i][k], expected[i][k], 2e-4 + 4 * kRoundingOf<T> * std::abs(expected[i][k]))
                << what << ", matrix " << i << ", element " << k;
        }
      });
}

/// A sample's numbers are the same whatever the batch.
TEST_F(CudaRecurrent, ASampleOfAStepDependsOnNoOther) {
  for (const DType type : {DType::f32, DType::bf16})
    with_type(type, [&]<typename T>(T) {
      const std::int64_t u = 64, most = 37;
      const Values matrix = random_values(4 * u * u, 1, -0.3, 0.3), state = random_values(most * u, 2),
                   gates = random_values(4 * most * u, 3), zeros(static_cast<std::size_t>(most * u));
      const CudaLane lane;
      const OnGpu<T> there(matrix);
      const auto states_of = [&](std::int64_t first, std::int64_t n) {
        const auto part = [&](const Values& of, std::int64_t width) {
          return Values(of.begin() + first * width, of.begin() + (first + n) * width);
        };
        const OnGpu<T> left(part(state, u)), h(part(zeros, u)), y(part(zeros, u));
        const OnGpu<float> g(part(gates, 4 * u)), c(part(zeros, u));
        gpu().recurrent.lstm_forward(lane, {n, u, 0, nullptr}, g.data(),
                                     RecurrentTerm::Factors{left.data(), there.data()}, 1.0F, nullptr,
                                     nullptr, c.data(), h.data(), {y.data(), u});
        return widened(h.host());
      };
      const std::vector<float> all = states_of(0, most);
      for (const auto& [first, n] : {std::pair{0, 1}, {5, 20}, {36, 1}})
        expect_same(states_of(first, n),
                    std::vector<float>(all.begin() + first * u, all.begin() + (first + n) * u),
                    fmt::format("{}: {} samples from {}", name_of(type), n, first));
    });
}

/// The shapes that docs/gpu.md names.
TEST_F(CudaRecurrent, FusesStepsOfSmallLayers) {
  const RecurrentKernels& kernels = gpu().recurrent;
  EXPECT_TRUE(kernels.fuses(DType::f32, 64, 128, 4));
  EXPECT_TRUE(kernels.fuses(DType::f32, 64, 352, 4));
  EXPECT_FALSE(kernels.fuses(DType::f32, 64, 384, 4));
  EXPECT_TRUE(kernels.fuses(DType::bf16, 64, 512, 4));
  EXPECT_FALSE(kernels.fuses(DType::bf16, 64, 544, 4));
  EXPECT_FALSE(kernels.fuses(DType::f32, 64, 100, 4));
  EXPECT_TRUE(kernels.fuses(DType::f32, 1, 1024, 4));
  EXPECT_FALSE(kernels.fuses(DType::f32, 1, 1056, 4));
  EXPECT_FALSE(cpu_kernels().recurrent.fuses(DType::f32, 64, 128, 4));
}

/// Copies between the types, with some matrices inside wider ones.
TEST_F(CudaRecurrent, CopiesOfRowsHaveTheBitsOfTheCpu) {
  const auto check = [&]<typename From, typename To>(From, To, std::int64_t columns, std::int64_t inside) {
    const std::int64_t rows = 7, from_stride = columns + 8, to_stride = columns + inside;
    const Values values = random_values(rows * from_stride, 1), before = random_values(rows * to_stride, 2);
    const Stored<From> from(values);
    const Stored<To> to(before);
    cpu_kernels().sequence.copy_rows(TestLane(), rows, columns, from.data() + inside, from_stride, to.data(),
                                     to_stride);
    const CudaLane lane;
    const OnGpu<From> there(values);
    const OnGpu<To> back(before);
    gpu().sequence.copy_rows(lane, rows, columns, there.data() + inside, from_stride, back.data(), to_stride);
    expect_same(back, to, fmt::format("{} columns, {} inside", columns, inside));
    for (std::int64_t row = 0; row < rows; ++row)
      EXPECT_EQ(to_float(to.data()[row * to_stride]),
                to_float(from_float<To>(to_float(from.data()[row * from_stride + inside]))));
  };
  for (const std::int64_t columns : {1, 5, 8, 12, 40})
    for (const std::int64_t inside : {0, 4, 8}) {
      check(float{}, float{}, columns, inside);
      check(float{}, BFloat16{}, columns, inside);
      check(Float16{}, float{}, columns, inside);
      check(BFloat16{}, BFloat16{}, columns, inside);
    }
}

}  // namespace
}  // namespace lockstep
