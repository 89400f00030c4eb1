// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolution and dense primitives of cpu_kernels(), at the level that LOCKSTEP_ISA allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/cpu.h"
#include "core/error.h"
#include "kernels/kernel_table.h"
#include "kernels/transposed_convolution.h"
#include "unit/kernels/linear_testing.h"

namespace lockstep {
namespace {

/// The results that a primitive computes from x, dy, weights and bias.
struct Results {
  Floats y, dx, dw;
};
Results run(const LinearPrimitive& primitive, int lane_index, std::int64_t xs, std::int64_t ys,
            std::int64_t ws, const Floats& x, const Floats& dy, const Floats& w, const Floats& b,
            bool training = true) {
  const TestLane lane(primitive.scratch_bytes(), lane_index);
  const Buffer packed(cpu_device(), primitive.packed_bytes());
  Results r{Floats(ys), Floats(xs), Floats(ws)};
  primitive.pack(lane, w.data(), packed.data());
  primitive.forward(lane, x.data(), w.data(), packed.data(), b.data(), r.y.data());
  if (!training) return r;
  primitive.backward_data(lane, dy.data(), w.data(), packed.data(), r.dx.data());
  primitive.backward_weights(lane, x.data(), dy.data(), r.dw.data());
  return r;
}

void check_convolution(const ConvolutionSpec& s) {
  const std::string what = describe(s);
  const Values x = random_values(x_count(s), 1), w = random_values(w_count(s), 2),
               dy = random_values(y_count(s), 3), b = random_values(s.out_c, 4), no_bias;
  const auto primitive = cpu_kernels().make.convolution(s, 1);
  const Results r =
      run(*primitive, 0, x_count(s), y_count(s), w_count(s), Floats(x), Floats(dy), Floats(w), Floats(b));
  const std::int64_t window = s.kernel_rows();
  expect_close(r.y.values(), reference::convolution(s, x, w, s.bias ? b : no_bias),
               reference::convolution(s, absolute(x), absolute(w), s.bias ? absolute(b) : no_bias),
               dot_error(window + 1), 0.0, "y " + what);
  expect_close(r.dx.values(), reference::convolution_backward_data(s, dy, w),
               reference::convolution_backward_data(s, absolute(dy), absolute(w)),
               dot_error(s.kernel_d * s.kernel_h * s.kernel_w * s.out_c / s.groups), 0.0, "dx " + what);
  expect_close(r.dw.values(), reference::convolution_backward_weights(s, x, dy),
               reference::convolution_backward_weights(s, absolute(x), absolute(dy)),
               dot_error(s.n * s.out_positions()), 0.0, "dw " + what);
  const double outputs = static_cast<double>(y_count(s));
  EXPECT_EQ(primitive->flops(), 2.0 * outputs * static_cast<double>(window)) << what;
}

TEST(Convolution, MatchesTheReference) {
  for (ConvolutionSpec s : convolution_specs()) check_convolution(s);
}

TEST(Convolution, FusesBiasAndRelu) {
  for (ConvolutionSpec s : convolution_specs()) {
    s.bias = true;
    check_convolution(s);
    s.relu = true;
    check_convolution(s);
  }
}

TEST(Convolution, ForwardOnlyReturnsTheSameResult) {
  for (ConvolutionSpec s : convolution_specs()) {
    s.training = false;
    const Values x = random_values(x_count(s), 1), w = random_values(w_count(s), 2);
    const Floats none(s.out_c);
    const auto primitive = cpu_kernels().make.convolution(s, 1);
    const Results r =
        run(*primitive, 0, x_count(s), y_count(s), w_count(s), Floats(x), none, Floats(w), none, false);
    expect_close(r.y.values(), reference::convolution(s, x, w, {}),
                 reference::convolution(s, absolute(x), absolute(w), {}), dot_error(s.kernel_rows()), 0.0,
                 describe(s));
    EXPECT_THROW(primitive->backward_weights(TestLane(1 << 20), none.data(), none.data(), none.data()),
                 Error);
  }
}

/// `s` is the underlying convolution: x has its output's shape, y its input's.
void check_transposed(const ConvolutionSpec& s) {
  const std::string what = "transposed " + describe(s);
  const Values x = random_values(y_count(s), 1), w = random_values(w_count(s), 2),
               dy = random_values(x_count(s), 3), b = random_values(s.in_c, 4);
  const auto primitive = make_transposed_convolution(cpu_kernels(), s, 1);
  const Results r =
      run(*primitive, 0, y_count(s), x_count(s), w_count(s), Floats(x), Floats(dy), Floats(w), Floats(b));
  const auto forward = [&](const Values& from, const Values& weights, const Values& bias) {
    Values y = reference::convolution_backward_data(s, from, weights);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (s.bias) y[i] += bias[i % bias.size()];
      if (s.relu) y[i] = std::max(y[i], 0.0);
    }
    return y;
  };
  ConvolutionSpec plain = s;
  plain.relu = false;
  expect_close(r.y.values(), forward(x, w, b), forward(absolute(x), absolute(w), absolute(b)),
               dot_error(s.kernel_d * s.kernel_h * s.kernel_w * s.out_c / s.groups + 1), 0.0, "y " + what);
  expect_close(r.dx.values(), reference::convolution(plain, dy, w, {}),
               reference::convolution(plain, absolute(dy), absolute(w), {}), dot_error(s.kernel_rows()), 0.0,
               "dx " + what);
  expect_close(r.dw.values(), reference::convolution_backward_weights(s, dy, x),
               reference::convolution_backward_weights(s, absolute(dy), absolute(x)),
               dot_error(s.n * s.out_positions()), 0.0, "dw " + what);
}

TEST(TransposedConvolution, IsTheDataGradientOfTheConvolution) {
  for (ConvolutionSpec s : convolution_specs())
    for (const bool bias : {false, true})
      for (const bool relu : {false, true}) {
        s.bias = bias;
        s.relu = relu;
        check_transposed(s);
      }
}

TEST(TransposedConvolution, ForwardOnlyReturnsTheSameBits) {
  for (ConvolutionSpec s : convolution_specs()) {
    s.bias = s.relu = true;
    const Floats x(random_values(y_count(s), 1)), w(random_values(w_count(s), 2)),
        b(random_values(s.in_c, 4)), dy(random_values(x_count(s), 3));
    const auto training = make_transposed_convolution(cpu_kernels(), s, 1);
    s.training = false;
    const auto inference = make_transposed_convolution(cpu_kernels(), s, 1);
    const Results expected = run(*training, 0, y_count(s), x_count(s), w_count(s), x, dy, w, b);
    const Results r = run(*inference, 0, y_count(s), x_count(s), w_count(s), x, dy, w, b, false);
    EXPECT_TRUE(same_bits(r.y, expected.y)) << describe(s);
    EXPECT_THROW(inference->backward_data(TestLane(1 << 24), dy.data(), w.data(), nullptr, x.data()), Error);
    EXPECT_THROW(inference->backward_weights(TestLane(1 << 24), x.data(), dy.data(), w.data()), Error);
  }
}

TEST(Convolution, ReferenceGradientsAreTheTransposes) {
  // <dy, conv(x, w)> = <dx, x> = <dw, w>: checks the reference that the layers' gradient checks use.
  for (const ConvolutionSpec& s : convolution_specs()) {
    const Values x = random_values(x_count(s), 1), w = random_values(w_count(s), 2),
                 dy = random_values(y_count(s), 3);
    const auto dot = [](const Values& a, const Values& b) {
      double sum = 0.0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
      return sum;
    };
    const double forward = dot(dy, reference::convolution(s, x, w, {}));
    const double scale = 1e-12 * static_cast<double>(y_count(s) + x_count(s));
    EXPECT_NEAR(dot(reference::convolution_backward_data(s, dy, w), x), forward, scale);
    EXPECT_NEAR(dot(reference::convolution_backward_weights(s, x, dy), w), forward, scale);
  }
}

TEST(Convolution, SameBitsOnEveryLaneAndRun) {
  for (ConvolutionSpec s : convolution_specs()) {
    s.bias = s.relu = true;
    const auto primitive = cpu_kernels().make.convolution(s, 2), alone = cpu_kernels().make.convolution(s, 1);
    const Floats x(random_values(x_count(s), 1)), w(random_values(w_count(s), 2)),
        dy(random_values(y_count(s), 3)), b(random_values(s.out_c, 4));
    EXPECT_TRUE(primitive->same_packing(*alone));
    const Results expected = run(*alone, 0, x_count(s), y_count(s), w_count(s), x, dy, w, b);
    const auto work = [&](int lane) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        const Results r = run(*primitive, lane, x_count(s), y_count(s), w_count(s), x, dy, w, b);
        EXPECT_TRUE(same_bits(r.y, expected.y)) << describe(s);
        EXPECT_TRUE(same_bits(r.dx, expected.dx)) << describe(s);
        EXPECT_TRUE(same_bits(r.dw, expected.dw)) << describe(s);
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
  }
}

TEST(Convolution, PackIsSharedAcrossNumbersOfSamples) {
  const ConvolutionSpec many = convolution(4, 8, 8, 16, 16, 3, 1, 1),
                        few = convolution(3, 8, 8, 16, 16, 3, 1, 1);
  const ConvolutionSpec wider = convolution(4, 8, 8, 16, 32, 3, 1, 1);
  const auto& make = cpu_kernels().make;
  EXPECT_TRUE(make.convolution(many, 1)->same_packing(*make.convolution(few, 1)));
  EXPECT_FALSE(make.convolution(many, 1)->same_packing(*make.convolution(wider, 1)));
}

TEST(Convolution, RejectsInconsistentShapes) {
  ConvolutionSpec s = convolution(2, 8, 8, 16, 16, 3, 1, 1);
  s.out_h = 7;
  EXPECT_THROW(cpu_kernels().make.convolution(s, 1), Error);
  const auto primitive = cpu_kernels().make.convolution(convolution(2, 8, 8, 16, 16, 3, 1, 1), 1);
  const Floats some(2 * 64 * 16);
  EXPECT_THROW(primitive->forward(TestLane(primitive->scratch_bytes(), 1), some.data(), some.data(),
                                  some.data(), nullptr, some.data()),
               Error);  // lane 1 of 1
}

/// If same_packing() is true for two primitives, each can use the other's pack.
TEST(Dense, PacksAreSharedIfSamePackingIsTrue) {
  const Values w = random_values(40 * 24, 2);
  const Floats weights(w);
  int shared = 0, packs = 0;
  for (const std::int64_t n : {1, 4, 64})
    for (const std::int64_t other : {2, 5, 64}) {
      const DenseSpec owner{.n = n, .in = 40, .out = 24, .packed = true};
      DenseSpec user = owner, plain = owner;
      user.n = other;
      plain.packed = false;
      const auto packing = cpu_kernels().make.dense(owner, 1), using_it = cpu_kernels().make.dense(user, 1);
      packs += packing->packed_bytes() > 0 ? 1 : 0;
      if (packing->packed_bytes() > 0) {
        EXPECT_FALSE(packing->same_packing(*cpu_kernels().make.dense(plain, 1)));
      }
      if (!using_it->same_packing(*packing)) continue;
      ++shared;
      const Values x = random_values(other * 40, 1), dy = random_values(other * 24, 3);
      const TestLane lane(std::max(packing->scratch_bytes(), using_it->scratch_bytes()));
      const Buffer packed(cpu_device(), packing->packed_bytes());
      packing->pack(lane, weights.data(), packed.data());
      const Floats y(other * 24), dx(other * 40);
      using_it->forward(lane, Floats(x).data(), weights.data(), packed.data(), nullptr, y.data());
      using_it->backward_data(lane, Floats(dy).data(), weights.data(), packed.data(), dx.data());
      expect_close(y.values(), reference::dense(user, x, w, {}),
                   reference::dense(user, absolute(x), absolute(w), {}), dot_error(40), 0.0, "y");
      expect_close(dx.values(), reference::dense_backward_data(user, dy, w),
                   reference::dense_backward_data(user, absolute(dy), absolute(w)), dot_error(24), 0.0, "dx");
    }
  EXPECT_GE(shared, 1);
  if (isa_level() == IsaLevel::avx512) {
    EXPECT_EQ(packs, 9);
  }
}

TEST(Dense, MatchesTheReference) {
  for (DenseSpec s : dense_specs())
    for (auto [bias, relu] : {std::pair{false, false}, {true, false}, {true, true}, {false, true}}) {
      s.bias = bias, s.relu = relu;
      const Values x = random_values(s.n * s.in, 1), w = random_values(s.in * s.out, 2),
                   dy = random_values(s.n * s.out, 3), b = random_values(s.out, 4), no_bias;
      const auto primitive = cpu_kernels().make.dense(s, 1);
      const Results r = run(*primitive, 0, s.n * s.in, s.n * s.out, s.in * s.out, Floats(x), Floats(dy),
                            Floats(w), Floats(b));
      const std::string what =
          fmt::format("{}x{}x{} bias {} relu {} packed {}", s.n, s.in, s.out, bias, relu, s.packed);
      expect_close(r.y.values(), reference::dense(s, x, w, bias ? b : no_bias),
                   reference::dense(s, absolute(x), absolute(w), bias ? absolute(b) : no_bias),
                   dot_error(s.in + 1), 0.0, "y " + what);
      expect_close(r.dx.values(), reference::dense_backward_data(s, dy, w),
                   reference::dense_backward_data(s, absolute(dy), absolute(w)), dot_error(s.out), 0.0,
                   "dx " + what);
      expect_close(r.dw.values(), reference::dense_backward_weights(s, x, dy),
                   reference::dense_backward_weights(s, absolute(x), absolute(dy)), dot_error(s.n), 0.0,
                   "dw " + what);
      EXPECT_EQ(primitive->flops(), 2.0 * static_cast<double>(s.n * s.in * s.out));
    }
}

TEST(Dense, SameBitsOnEveryLaneAndRun) {
  for (DenseSpec s : dense_specs()) {
    s.bias = s.relu = true;
    const auto primitive = cpu_kernels().make.dense(s, 2), alone = cpu_kernels().make.dense(s, 1);
    const Floats x(random_values(s.n * s.in, 1)), w(random_values(s.in * s.out, 2)),
        dy(random_values(s.n * s.out, 3)), b(random_values(s.out, 4));
    const Results expected = run(*alone, 0, s.n * s.in, s.n * s.out, s.in * s.out, x, dy, w, b);
    const auto work = [&](int lane) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        const Results r = run(*primitive, lane, s.n * s.in, s.n * s.out, s.in * s.out, x, dy, w, b);
        EXPECT_TRUE(same_bits(r.y, expected.y));
        EXPECT_TRUE(same_bits(r.dx, expected.dx));
        EXPECT_TRUE(same_bits(r.dw, expected.dw));
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
  }
}

TEST(Linear, NanInputsReachTheOutput) {
  ConvolutionSpec c = convolution(1, 4, 4, 16, 16, 1, 1, 0);
  DenseSpec d;
  d.n = 4, d.in = 16, d.out = 16;
  for (bool relu : {false, true}) {
    c.relu = d.relu = relu;
    Floats x(random_values(16 * 16, 1)), w(random_values(16 * 16, 2)), none(16);
    x[3] = std::nanf("");
    const Results conv = run(*cpu_kernels().make.convolution(c, 1), 0, 256, 256, 256, x, x, w, none);
    EXPECT_TRUE(std::isnan(conv.y[0])) << "convolution, relu " << relu;
    const Results dense = run(*cpu_kernels().make.dense(d, 1), 0, 64, 64, 256, x, x, w, none);
    EXPECT_TRUE(std::isnan(dense.y[0])) << "dense, relu " << relu;
  }
}

}  // namespace
}  // namespace lockstep
