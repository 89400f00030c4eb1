// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention properties that the layer tests do not cover: equal bits at all levels, of a sample alone and in
// a batch, and with stored and recomputed probabilities; masked values never affect a result; what 16-bit
// activations round.
#include "kernels/attention.h"

#include "kernel_testing.h"
#include "stored_testing.h"

namespace lockstep {
namespace {

struct Problem {
  AttentionShape shape;
  std::vector<float> lengths = {};

  /// With q, k and v interleaved, as a projection stores them.
  AttentionShape packed() const {
    AttentionShape all = shape;
    all.query_stride = all.key_stride = 3 * shape.heads * shape.head_size;
    all.lengths = !lengths.empty();
    return all;
  }
};

constexpr AttentionDropout kDropout{0.25F, 5, 6, 7, 100};

template <typename T>
AttentionInputs inputs_of(const Problem& problem, const T* qkv) {
  const std::int64_t units = problem.shape.heads * problem.shape.head_size;
  return {.q = qkv,
          .k = qkv + units,
          .v = qkv + 2 * units,
          .lengths = problem.lengths.empty() ? nullptr : problem.lengths.data()};
}

struct Outcome {
  Floats y, gradients;
};

Outcome run(const AttentionKernels& kernels, const Problem& problem, const Floats& qkv, const Floats& dy,
            bool stored) {
  const AttentionShape shape = problem.packed();
  const std::int64_t units = shape.heads * shape.head_size, stride = 3 * units;
  const TestLane lane(kernels.scratch_bytes(shape, DType::f32, stored, true));
  const AttentionInputs inputs = inputs_of<float>(problem, qkv.data());
  const Floats probabilities(shape.probabilities());
  EXPECT_EQ(kernels.kept_bytes(shape, DType::f32), probabilities.size() * sizeof(float));
  void* kept = stored ? probabilities.data() : nullptr;
  Outcome result{Floats(shape.n * shape.queries * units), Floats(shape.n * shape.queries * stride)};
  kernels.forward(lane, shape, inputs, kDropout, kept, result.y.data());
  float* gradient = result.gradients.data();
  kernels.backward(lane, shape, inputs, kDropout, kept, result.y.data(), dy.data(),
                   {gradient, gradient + units, gradient + 2 * units});
  return result;
}

const std::vector<Problem>& problems() {
  static const std::vector<Problem> list{
      {{.n = 2, .heads = 3, .head_size = 5, .queries = 17, .keys = 17}},
      {{.n = 2, .heads = 2, .head_size = 32, .queries = 70, .keys = 70, .causal = true}},
      {{.n = 2, .heads = 1, .head_size = 64, .queries = 33, .keys = 33, .causal = true, .dropout = true},
       {20, 33}},
      {{.n = 2, .heads = 2, .head_size = 16, .queries = 9, .keys = 9, .dropout = true}, {0, 4}},
  };
  return list;
}

TEST(AttentionKernels, BitsAreEqualAtAllLevelsAndWithRecomputation) {
  const std::vector<Level> all = levels();
  for (const Problem& problem : problems()) {
    const std::int64_t count =
        problem.shape.n * problem.shape.queries * problem.shape.heads * problem.shape.head_size;
    const Floats qkv(random_values(3 * count, 1, -2, 2)), dy(random_values(count, 2));
    const Outcome first = run(all.front().attention, problem, qkv, dy, true);
    for (const Level& level : all)
      for (bool stored : {true, false}) {
        const Outcome other = run(level.attention, problem, qkv, dy, stored);
        EXPECT_TRUE(same_bits(other.y, first.y)) << level.name << " stored " << stored;
        EXPECT_TRUE(same_bits(other.gradients, first.gradients)) << level.name << " stored " << stored;
      }
  }
}

TEST(AttentionKernels, ASampleHasTheSameBitsAloneAndInABatch) {
  const AttentionKernels& kernels = levels().back().attention;
  const Problem both{{.n = 2, .heads = 2, .head_size = 7, .queries = 19, .keys = 19, .causal = true},
                     {19, 11}};
  Problem alone = both;
  alone.shape.n = 1;
  alone.lengths = {11};
  const std::int64_t half = 19 * 14;
  const Values qkv = random_values(6 * half, 1), dy = random_values(2 * half, 2);
  const Outcome together = run(kernels, both, Floats(qkv), Floats(dy), true);
  const Outcome apart = run(kernels, alone, Floats(Values(qkv.begin() + 3 * half, qkv.end())),
                            Floats(Values(dy.begin() + half, dy.end())), true);
  for (std::int64_t i = 0; i < half; ++i)
    ASSERT_EQ(apart.y[static_cast<std::size_t>(i)], together.y[static_cast<std::size_t>(half + i)]);
  for (std::int64_t i = 0; i < 3 * half; ++i)
    ASSERT_EQ(apart.gradients[static_cast<std::size_t>(i)],
              together.gradients[static_cast<std::size_t>(3 * half + i)]);
}

TEST(AttentionKernels, MaskedQueriesAreZeroAndLargeScoresFinite) {
  for (const Level& level : levels()) {
    const Problem problem{{.n = 1, .heads = 1, .head_size = 4, .queries = 6, .keys = 6}, {3}};
    Values qkv = random_values(6 * 12, 1, -1e4, 1e4);
    const Outcome result = run(level.attention, problem, Floats(qkv), Floats(random_values(24, 2)), true);
    for (std::size_t i = 0; i < 24; ++i) {
      ASSERT_TRUE(std::isfinite(result.y[i])) << level.name;
      if (i >= 12) {
        EXPECT_EQ(result.y[i], 0.0F) << level.name;
      }
    }
    for (std::size_t i = 0; i < 72; ++i) ASSERT_TRUE(std::isfinite(result.gradients[i])) << level.name;
    for (std::size_t i = 36; i < 72; ++i) EXPECT_EQ(result.gradients[i], 0.0F) << level.name;
    qkv[4] = std::nan("");  // a valid key
    EXPECT_TRUE(
        std::isnan(run(level.attention, problem, Floats(qkv), Floats(random_values(24, 2)), true).y[0]));
  }
}

TEST(AttentionKernels, RowsPastALengthAreCleared) {
  for (const Level& level : levels()) {
    const Floats x(random_values(3 * 4 * 5, 1, 1, 2));
    const std::vector<float> lengths{2, 0, 9};
    level.attention.zero_past(TestLane(), 3, 4, 5, lengths.data(), x.data());
    for (std::size_t i = 0; i < 60; ++i) {
      const bool past = (i < 20 && i >= 10) || (i >= 20 && i < 40);
      EXPECT_EQ(x[i] == 0.0F, past) << i;
    }
  }
}

/// In T: y is the float32 kernel's y from the same numbers, rounded. The kept probabilities are rounded too,
/// and the gradients are those of float32 with these probabilities, rounded.
template <typename T>
void expect_stored(const Level& level, const Problem& problem, int shift) {
  const AttentionKernels& kernels = level.attention;
  const AttentionShape shape = problem.packed();
  const std::int64_t units = shape.heads * shape.head_size, count = shape.n * shape.queries * units;
  const std::string what = level.name + " " + std::string(name_of(dtype_of<T>)) + " " +
                           std::to_string(shape.queries) + " shift " + std::to_string(shift);
  const Stored<T> qkv(random_values(3 * count, 1, -2, 2), shift), dy(random_values(count, 2), shift);
  const Floats wide_qkv = qkv.widened(), wide_dy = dy.widened();
  const TestLane lane(kernels.scratch_bytes(shape, dtype_of<T>, false, true));
  const AttentionInputs inputs = inputs_of<T>(problem, qkv.data()),
                        wide = inputs_of<float>(problem, wide_qkv.data());

  Stored<T> y(count, shift), kept(shape.probabilities());
  Floats exact_y(count), exact_kept(shape.probabilities());
  EXPECT_EQ(kernels.kept_bytes(shape, dtype_of<T>), kept.size() * sizeof(T));
  kernels.forward(lane, shape, inputs, kDropout, kept.data(), y.data());
  kernels.forward(lane, shape, wide, kDropout, exact_kept.data(), exact_y.data());
  expect_rounded(y, exact_y, what + " y");
  expect_rounded(kept, exact_kept, what + " probabilities");

  const Floats rounded = kept.widened();
  const Stored<T> gradients(3 * count, shift), again(3 * count, shift);
  Floats exact(3 * count);
  const auto at = [units](auto* g) { return AttentionGradients{g, g + units, g + 2 * units}; };
  kernels.backward(lane, shape, inputs, kDropout, kept.data(), y.data(), dy.data(), at(gradients.data()));
  kernels.backward(lane, shape, wide, kDropout, rounded.data(), exact_y.data(), wide_dy.data(),
                   at(exact.data()));
  kernels.backward(lane, shape, inputs, kDropout, nullptr, y.data(), dy.data(), at(again.data()));
  expect_rounded(gradients, exact, what + " gradients");
  EXPECT_TRUE(same_bits(gradients.widened(), again.widened())) << what << " without kept probabilities";
}

TEST(AttentionKernels, In16BitsResultsAreFloat32RoundedOnce) {
  for (const Level& level : levels())
    for (const Problem& problem : problems())
      for (int shift : {0, 1}) {
        expect_stored<BFloat16>(level, problem, shift);
        expect_stored<Float16>(level, problem, shift);
      }
}

TEST(AttentionKernels, RowsPastALengthAreClearedIn16Bits) {
  for (const Level& level : levels()) {
    const Stored<BFloat16> x(random_values(3 * 4 * 5, 1, 1, 2));
    const std::vector<float> lengths{2, 0, 9};
    level.attention.zero_past(TestLane(), 3, 4, 5, lengths.data(), x.data());
    for (std::size_t i = 0; i < 60; ++i) {
      const bool past = (i < 20 && i >= 10) || (i >= 20 && i < 40);
      EXPECT_EQ(x.values()[i] == 0.0, past) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
