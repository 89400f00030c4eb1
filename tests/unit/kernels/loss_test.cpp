// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/loss.h"

#include <gtest/gtest.h>

#include <limits>

#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

struct Size {
  std::int64_t rows, classes;
};
const std::vector<Size> kSizes{{0, 10}, {1, 1}, {7, 2}, {64, 10}, {33, 16}, {5, 17}, {12, 100}, {4, 1000}};

/// Relative error of an exponential: 2 units in the last place, and one rounding of x - max (|x - max| < 32).
constexpr double exponential_error(double largest_difference) {
  return 4 * kRounding + largest_difference * kRounding;
}
/// The sum adds at most classes / 16 + 1 numbers in float32.
double softmax_error(std::int64_t classes, double largest_difference) {
  return 2 * exponential_error(largest_difference) + (static_cast<double>(classes) / 16 + 4) * kRounding;
}

std::vector<std::int32_t> labels_for(Size size) {
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < size.rows; ++r)
    labels.push_back(static_cast<std::int32_t>((r * 7 + 3) % size.classes));
  return labels;
}

TEST(Loss, SoftmaxCrossEntropyForwardAndBackward) {
  for (const Level& level : levels())
    for (Size size : kSizes) {
      const std::int64_t count = size.rows * size.classes;
      const Values x = random_values(count, 1, -8.0, 8.0), y = reference::softmax(size.rows, size.classes, x);
      const auto labels = labels_for(size);
      constexpr float kScale = 0.125F;
      double expected_loss = 0.0;
      std::int64_t expected_correct = 0;
      Values expected_dx(x.size());
      for (std::int64_t r = 0; r < size.rows; ++r) {
        const auto first = static_cast<std::size_t>(r * size.classes);
        const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(r)]);
        expected_loss -= std::log(y[first + label]);
        std::size_t best = 0;
        for (std::size_t j = 0; j < static_cast<std::size_t>(size.classes); ++j) {
          if (y[first + j] > y[first + best]) best = j;
          expected_dx[first + j] = (y[first + j] - (j == label ? 1.0 : 0.0)) * static_cast<double>(kScale);
        }
        expected_correct += best == label ? 1 : 0;
      }
      const Floats xs(x);
      Floats dx(count);
      double loss = -1.0, loss_only = -1.0;
      std::int64_t correct = -1, correct_only = -1;
      level.loss.softmax_cross_entropy(TestLane(), size.rows, size.classes, xs.data(), labels.data(), kScale,
                                       dx.data(), &loss, &correct);
      level.loss.softmax_cross_entropy(TestLane(), size.rows, size.classes, xs.data(), labels.data(), kScale,
                                       nullptr, &loss_only, &correct_only);
      const std::string what =
          level.name + " " + std::to_string(size.rows) + "x" + std::to_string(size.classes);
      const double error = softmax_error(size.classes, 16.0);
      EXPECT_NEAR(loss, expected_loss, static_cast<double>(size.rows) * error) << what;
      EXPECT_EQ(loss, loss_only) << what;
      EXPECT_EQ(correct, expected_correct) << what;
      EXPECT_EQ(correct, correct_only) << what;
      expect_close(dx.values(), expected_dx, expected_dx, 0.0, error * static_cast<double>(kScale), what);
      // In place.
      const Floats over = xs.copy();
      level.loss.softmax_cross_entropy(TestLane(), size.rows, size.classes, over.data(), labels.data(),
                                       kScale, over.data(), &loss, &correct);
      EXPECT_TRUE(same_bits(over, dx)) << what;

      // The same labels, dense.
      Floats dense(count), dense_dx(count);
      for (std::size_t r = 0; r < labels.size(); ++r)
        dense[r * static_cast<std::size_t>(size.classes) + static_cast<std::size_t>(labels[r])] = 1.0F;
      double dense_loss = -1.0;
      std::int64_t dense_correct = -1;
      level.loss.softmax_cross_entropy_dense(TestLane(), size.rows, size.classes, xs.data(), dense.data(),
                                             kScale, dense_dx.data(), &dense_loss, &dense_correct);
      EXPECT_NEAR(dense_loss, loss, 1e-12 * static_cast<double>(size.rows + 1) * 16) << what;
      EXPECT_EQ(dense_correct, expected_correct) << what;
      expect_close(dense_dx.values(), expected_dx, expected_dx, 0.0, (error + 2 * kRounding) * 0.125, what);
    }
}

TEST(Loss, DenseLabelsWithAnySum) {
  for (const Level& level : levels()) {
    const std::int64_t rows = 6, classes = 21;
    const Values x = random_values(rows * classes, 2, -4.0, 4.0),
                 t = random_values(rows * classes, 3, 0.0, 0.2);
    Values shifted = x;
    const auto loss_of = [&](const Values& logits) {
      const Values y = reference::softmax(rows, classes, logits);
      double sum = 0.0;
      for (std::size_t i = 0; i < y.size(); ++i) sum -= t[i] * std::log(y[i]);
      return sum;
    };
    const Floats xs(x), ts(t);
    Floats dx(rows * classes);
    double loss = 0.0;
    std::int64_t correct = 0;
    level.loss.softmax_cross_entropy_dense(TestLane(), rows, classes, xs.data(), ts.data(), 1.0F, dx.data(),
                                           &loss, &correct);
    EXPECT_NEAR(loss, loss_of(x), 2.1 * 21 * 0.1 * softmax_error(classes, 8.0) * rows);
    for (std::size_t i = 0; i < x.size(); ++i) {  // central differences
      shifted[i] = x[i] + 1e-4;
      const double up = loss_of(shifted);
      shifted[i] = x[i] - 1e-4;
      const double down = loss_of(shifted);
      shifted[i] = x[i];
      EXPECT_NEAR(dx[i], (up - down) / 2e-4, 4.2 * softmax_error(classes, 8.0) + 1e-7);
    }
  }
}

TEST(Loss, ExtremeLogits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  const std::int32_t label = 1;
  for (const Level& level : levels()) {
    double loss = 0.0;
    std::int64_t correct = 0;
    const auto run = [&](Values logits, Floats& dx) {
      const Floats x(logits);
      level.loss.softmax_cross_entropy(TestLane(), 1, static_cast<std::int64_t>(logits.size()), x.data(),
                                       &label, 1.0F, dx.data(), &loss, &correct);
    };
    Floats dx(3);
    run({3e38, -3e38, 0.0}, dx);  // improbable, but finite
    EXPECT_TRUE(std::isfinite(loss));
    EXPECT_EQ(loss, static_cast<double>(3e38F) * 2);
    EXPECT_EQ(dx[0], 1.0F);
    EXPECT_EQ(dx[1], -1.0F);
    run({-kInfinity, 2.0, -kInfinity}, dx);  // masked classes
    EXPECT_EQ(loss, 0.0);
    EXPECT_EQ(correct, 1);
    EXPECT_EQ(dx[0], 0.0F);
    run({5.0, 5.0, 5.0}, dx);  // the lowest index wins a tie
    EXPECT_EQ(correct, 0);
    for (std::size_t at : {0, 1, 2}) {
      Values logits{1.0, 2.0, 0.5};
      logits[at] = static_cast<double>(kNan);
      run(logits, dx);
      EXPECT_TRUE(std::isnan(loss)) << at;
      EXPECT_TRUE(std::isnan(dx[0])) << at;
    }
  }
}

TEST(Loss, GradientIsAccurateForConfidentPredictions) {
  // softmax - 1 = -exp(-20) / (1 + exp(-20)): in float32, 1 - 1 would be 0.
  const std::int32_t label = 0;
  for (const Level& level : levels()) {
    const Floats x(Values{20.0, 0.0});
    Floats dx(2);
    double loss = 0.0;
    std::int64_t correct = 0;
    level.loss.softmax_cross_entropy(TestLane(), 1, 2, x.data(), &label, 1.0F, dx.data(), &loss, &correct);
    const double p = std::exp(-20.0) / (1 + std::exp(-20.0));
    EXPECT_NEAR(dx[0], -p, p * softmax_error(2, 20.0));
    EXPECT_NEAR(dx[1], p, p * softmax_error(2, 20.0));
    EXPECT_NEAR(loss, std::log1p(std::exp(-20.0)), p * softmax_error(2, 20.0));
  }
}

TEST(Loss, ExponentialIsWithinTwoUnitsInTheLastPlace) {
  // Softmax of (0, -d): the second output is e / (1 + e) with e = exp(-d).
  for (const Level& level : levels())
    for (double d = 0.0; d < 87.0; d += 0.0371) {
      const Floats x(Values{0.0, -static_cast<double>(static_cast<float>(d))});
      Floats y(2);
      level.loss.softmax(TestLane(), 1, 2, x.data(), y.data());
      const double e = std::exp(static_cast<double>(x[1])), expected = e / (1 + e);
      ASSERT_NEAR(y[1], expected, expected * 8 * kRounding) << level.name << " " << d;
    }
}

TEST(Loss, LogSoftmaxAndItsGradient) {
  for (Size size : kSizes) {
    const std::int64_t count = size.rows * size.classes;
    const Floats xs(random_values(count, 4, -50.0, 50.0)), dys(random_values(count, 5));
    const Values y = reference::softmax(size.rows, size.classes, xs.values());
    Values logs, dx;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t classes = static_cast<std::size_t>(size.classes), first = i / classes * classes;
      double sum = 0.0;
      for (std::size_t k = first; k < first + classes; ++k) sum += static_cast<double>(dys[k]);
      logs.push_back(std::log(y[i]));
      dx.push_back(static_cast<double>(dys[i]) - y[i] * sum);
    }
    std::vector<Floats> first;
    for (const Level& level : levels()) {
      Floats ys(count), dxs(count);
      level.loss.log_softmax(TestLane(), size.rows, size.classes, xs.data(), ys.data());
      level.loss.log_softmax_backward(TestLane(), size.rows, size.classes, ys.data(), dys.data(), dxs.data());
      // x - max - log(sum): numbers of up to 100, rounded a few times; exp(y) has the same relative error.
      const double error = 4 * 100 * kRounding;
      expect_close(ys.values(), logs, Values(y.size(), 1.0), error, 0.0, "log_softmax " + level.name);
      expect_close(dxs.values(), dx, Values(y.size(), static_cast<double>(size.classes)), error, 0.0,
                   "log_softmax gradient " + level.name);
      const Floats over_x = xs.copy(), over_dy = dys.copy();
      level.loss.log_softmax(TestLane(), size.rows, size.classes, over_x.data(), over_x.data());
      level.loss.log_softmax_backward(TestLane(), size.rows, size.classes, ys.data(), over_dy.data(),
                                      over_dy.data());
      EXPECT_TRUE(same_bits(over_x, ys) && same_bits(over_dy, dxs)) << level.name;
      if (first.empty()) first.push_back(ys.copy()), first.push_back(dxs.copy());
      EXPECT_TRUE(same_bits(ys, first[0]) && same_bits(dxs, first[1])) << level.name;
    }
  }
}

TEST(Loss, SoftmaxAndItsGradient) {
  for (const Level& level : levels())
    for (Size size : kSizes) {
      const std::int64_t count = size.rows * size.classes;
      const Values x = random_values(count, 4, -5.0, 5.0), dy = random_values(count, 5);
      const Values y = reference::softmax(size.rows, size.classes, x);
      const Floats xs(x), dys(dy);
      Floats ys(count), dxs(count);
      level.loss.softmax(TestLane(), size.rows, size.classes, xs.data(), ys.data());
      const double error = softmax_error(size.classes, 10.0);
      expect_close(ys.values(), y, y, error, 0.0, "softmax " + level.name);
      level.loss.softmax_backward(TestLane(), size.rows, size.classes, ys.data(), dys.data(), dxs.data());
      Values dx(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t classes = static_cast<std::size_t>(size.classes), first = i / classes * classes;
        double mean = 0.0;
        for (std::size_t k = first; k < first + classes; ++k) mean += y[k] * dy[k];
        dx[i] = y[i] * (dy[i] - mean);
      }
      expect_close(dxs.values(), dx, y, 3 * error, 0.0, "softmax gradient " + level.name);
      const Floats over_x = xs.copy(), over_dy = dys.copy();
      level.loss.softmax(TestLane(), size.rows, size.classes, over_x.data(), over_x.data());
      EXPECT_TRUE(same_bits(over_x, ys));
      level.loss.softmax_backward(TestLane(), size.rows, size.classes, ys.data(), over_dy.data(),
                                  over_dy.data());
      EXPECT_TRUE(same_bits(over_dy, dxs));
    }
}

TEST(Loss, SameBitsAtEveryLevelAndAddress) {
  for (Size size : kSizes) {
    const std::int64_t count = size.rows * size.classes;
    const Values x = random_values(count, 6, -8.0, 8.0);
    const auto labels = labels_for(size);
    Floats first_dx(count);
    double first_loss = 0.0;
    bool first = true;
    for (const Level& level : levels())
      for (int shift : {0, 1, 9}) {
        const Floats xs(x, shift);
        Floats dx(count, shift);
        double loss = 0.0;
        std::int64_t correct = 0;
        level.loss.softmax_cross_entropy(TestLane(), size.rows, size.classes, xs.data(), labels.data(), 0.01F,
                                         dx.data(), &loss, &correct);
        if (first) {
          std::memcpy(first_dx.data(), dx.data(), dx.size() * sizeof(float));
          first_loss = loss;
          first = false;
        }
        EXPECT_TRUE(same_bits(dx, first_dx)) << level.name << " " << shift;
        EXPECT_EQ(loss, first_loss) << level.name << " " << shift;
      }
  }
}

/// 16-bit logits: the float32 kernel's sums on the widened numbers, and its gradient, rounded once; at any
/// address, in place, and with ignored rows.
template <typename T>
void expect_float32_rounded() {
  constexpr float kScale = 0.125F;
  for (const Level& level : levels())
    for (Size size : kSizes)
      for (int shift : {0, 1}) {
        const std::int64_t count = size.rows * size.classes;
        Values logits = random_values(count, 7, -8.0, 8.0);
        if (size.classes > 16) logits[3] = -INFINITY;
        const Stored<T> x(logits, shift), dx(count, shift);
        const Floats wide = x.widened(), targets(random_values(count, 8, 0.0, 0.5)), wide_dx(count);
        std::vector<std::int32_t> labels = labels_for(size);
        if (labels.size() > 2) labels[2] = -1;
        for (bool sparse : {true, false}) {
          const auto run = [&](ConstData from, Data to, double* loss, std::int64_t* correct) {
            if (sparse)
              level.loss.softmax_cross_entropy(TestLane(), size.rows, size.classes, from, labels.data(),
                                               kScale, to, loss, correct);
            else
              level.loss.softmax_cross_entropy_dense(TestLane(), size.rows, size.classes, from,
                                                     targets.data(), kScale, to, loss, correct);
          };
          double loss = -1, wide_loss = -2, alone = -3, in_place_loss = -4;
          std::int64_t correct = -1, wide_correct = -2, others = 0;
          const Stored<T> over(x.values(), shift);
          run(wide.data(), wide_dx.data(), &wide_loss, &wide_correct);
          run(x.data(), dx.data(), &loss, &correct);
          run(x.data(), Data(nullptr, dtype_of<T>), &alone, &others);
          run(over.data(), over.data(), &in_place_loss, &others);
          const std::string what = fmt::format("{} {}x{} shift {} {}", level.name, size.rows, size.classes,
                                               shift, sparse ? "labels" : "dense");
          EXPECT_EQ(loss, wide_loss) << what;
          EXPECT_EQ(alone, wide_loss) << what;
          EXPECT_EQ(in_place_loss, wide_loss) << what;
          EXPECT_EQ(correct, wide_correct) << what;
          EXPECT_EQ(others, wide_correct) << what;
          expect_rounded(dx, wide_dx, what);
          expect_rounded(over, wide_dx, what + " in place");
        }
      }
}
TEST(Loss, BFloat16LogitsAreFloat32RoundedOnce) { expect_float32_rounded<BFloat16>(); }
TEST(Loss, Float16LogitsAreFloat32RoundedOnce) { expect_float32_rounded<Float16>(); }

}  // namespace
}  // namespace lockstep
