// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/loss.h"

#include "unit/kernels_cuda/stored_cuda_testing.h"

namespace lockstep {
namespace {

class CudaLoss : public GpuTest {};

/// Few classes, many, and more than a warp handles; rows for one block and for several.
const std::vector<Size> kLosses{{0, 3},    {1, 1},    {1, 10},   {17, 3},   {130, 33}, {9, 1024},
                                {5, 1025}, {3, 3001}, {9000, 2}, {6, 1028}, {0, 2000}, {30, 1500}};

/// Logits differ by up to 10. The difference is rounded before its exponential: up to 10 roundings. expf is
/// within 2 units in the last place (4 roundings), followed by at most four more roundings.
constexpr double kTermError = (10 + 8) * kRounding;

struct Expected {
  double loss = 0.0, magnitude = 0.0;
  std::int64_t correct = 0;
  Values dx;
};

Expected expected_of(Size size, const Values& x, const Values& targets, double scale) {
  Expected e;
  e.dx.resize(x.size());
  for (std::int64_t row = 0; row < size.rows; ++row) {
    const double* logits = x.data() + row * size.channels;
    const double* target = targets.data() + row * size.channels;
    const double top = *std::max_element(logits, logits + size.channels);
    double sum = 0.0, mass = 0.0, dot = 0.0;
    for (std::int64_t j = 0; j < size.channels; ++j) {
      sum += std::exp(logits[j] - top);
      mass += target[j];
      dot += target[j] * (logits[j] - top);
    }
    e.loss += mass * std::log(sum) - dot;
    e.magnitude += mass * (1.0 + std::abs(std::log(sum))) + std::abs(dot);
    e.correct += std::max_element(logits, logits + size.channels) - logits ==
                         std::max_element(target, target + size.channels) - target
                     ? 1
                     : 0;
    for (std::int64_t j = 0; j < size.channels; ++j)
      e.dx[static_cast<std::size_t>(row * size.channels + j)] =
          (std::exp(logits[j] - top) / sum * mass - target[j]) * scale;
  }
  return e;
}

TEST_F(CudaLoss, CrossEntropyOfLabelsAndOfDenseTargets) {
  constexpr double kScale = 1.0 / 64;
  for (Size size : kLosses) {
    const std::int64_t count = size.rows * size.channels;
    const Values x = random_values(count, 1, -5.0, 5.0);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(size.rows));
    Values onehot(x.size()), dense = random_values(count, 2, 0.0, 1.0);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i * 7 + 1) % size.channels);
      onehot[i * static_cast<std::size_t>(size.channels) + static_cast<std::size_t>(labels[i])] = 1.0;
    }
    for (bool sparse : {true, false}) {
      const Values& targets = sparse ? onehot : dense;
      const Expected expected = expected_of(size, x, targets, kScale);
      std::vector<float> first_dx;
      double first_loss = 0.0;
      for (bool in_place : {false, true}) {
        const CudaLane lane;
        const DeviceFloats dx(x, 1), dtargets(targets), gradient(count);
        const OnDevice<std::int32_t> dlabels(labels);
        const DeviceDoubles loss(1);
        const OnDevice<std::int64_t> correct(1);
        float* out = in_place ? dx.data() : gradient.data();
        if (sparse)
          gpu().loss.softmax_cross_entropy(lane, size.rows, size.channels, dx.data(), dlabels.data(),
                                           static_cast<float>(kScale), out, loss.data(), correct.data());
        else
          gpu().loss.softmax_cross_entropy_dense(lane, size.rows, size.channels, dx.data(), dtargets.data(),
                                                 static_cast<float>(kScale), out, loss.data(),
                                                 correct.data());
        const std::string what = fmt::format("{} {}", describe(size), sparse ? "labels" : "dense");
        EXPECT_NEAR(loss.host()[0], expected.loss, kTermError * expected.magnitude) << what;
        EXPECT_EQ(correct.host()[0], expected.correct) << what;
        const std::vector<float> actual = in_place ? dx.host() : gradient.host();
        // softmax * mass and the target are each rounded, relative to 1 (or the mass), not to their
        // difference.
        Values magnitude(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          magnitude[i] = std::abs(expected.dx[i]) + 2 * kScale * targets[i];
        expect_close({actual.begin(), actual.end()}, expected.dx, magnitude, kTermError, 1e-37, what);
        if (first_dx.empty()) {
          first_dx = actual;
          first_loss = loss.host()[0];
        }
        expect_same(actual, first_dx, "again, in place, " + what);
        EXPECT_EQ(loss.host()[0], first_loss) << what;
      }
    }
  }
}

/// 16-bit logits, in rows that begin at any place of a pack of 16 bytes: against double, and with the same
/// bits at any address and in place.
template <typename T>
void expect_sixteen_bits() {
  constexpr float kScale = 0.125F;
  for (Size size : {Size{0, 3}, Size{1, 1}, Size{17, 3}, Size{130, 33}, Size{9, 512}, Size{5, 513},
                    Size{4, 1024}, Size{5, 1025}, Size{3, 9001}, Size{2, 16384}, Size{9000, 2}}) {
    const std::int64_t count = size.rows * size.channels;
    const Stored<T> x(random_values(count, 1, -5.0, 5.0));
    std::vector<std::int32_t> labels;
    for (std::int64_t row = 0; row < size.rows; ++row)
      labels.push_back(row == 2 ? -1 : static_cast<std::int32_t>((row * 7 + 1) % size.channels));
    Values onehot(x.size());
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] >= 0)
        onehot[i * static_cast<std::size_t>(size.channels) + static_cast<std::size_t>(labels[i])] = 1.0;
    const Floats dense(random_values(count, 2, 0.0, 1.0));
    for (bool sparse : {true, false}) {
      Expected expected = expected_of(size, x.values(), sparse ? onehot : dense.values(), kScale);
      if (sparse && size.rows > 2) {  // a row without a target looks as if its class were 0
        const Values values = x.values();
        const auto row = values.begin() + 2 * size.channels;
        expected.correct -= std::max_element(row, row + size.channels) == row ? 1 : 0;
      }
      std::vector<float> first_dx;
      double first_loss = 0.0;
      for (int shift : {0, 1, 8})
        for (bool in_place : {false, true}) {
          const CudaLane lane;
          const OnDevice<T> logits = on_device(x, shift), gradient(count, in_place ? 0 : shift);
          const DeviceFloats targets(dense.values(), shift);
          const OnDevice<std::int32_t> dlabels(labels);
          const DeviceDoubles loss(1);
          const OnDevice<std::int64_t> correct(1);
          const OnDevice<T>& out = in_place ? logits : gradient;
          if (sparse)
            gpu().loss.softmax_cross_entropy(lane, size.rows, size.channels, logits.data(), dlabels.data(),
                                             kScale, out.data(), loss.data(), correct.data());
          else
            gpu().loss.softmax_cross_entropy_dense(lane, size.rows, size.channels, logits.data(),
                                                   targets.data(), kScale, out.data(), loss.data(),
                                                   correct.data());
          const std::string what =
              fmt::format("{} {} shift {} {}", describe(size), sparse ? "labels" : "dense", shift,
                          in_place ? "in place" : "");
          const std::vector<float> actual = widened(out.host());
          if (first_dx.empty()) {
            first_dx = actual;
            first_loss = loss.host()[0];
            EXPECT_NEAR(first_loss, expected.loss, kTermError * expected.magnitude) << what;
            for (std::size_t i = 0; i < actual.size(); ++i) {
              const double target = sparse ? onehot[i] : static_cast<double>(dense[i]);
              const double error = kTermError * (std::abs(expected.dx[i]) + 2 * kScale * target) + 1e-37;
              ASSERT_NEAR(actual[i], expected.dx[i], rounded_error<T>(expected.dx[i], error))
                  << what << " " << i;
            }
          }
          expect_same(actual, first_dx, what);
          EXPECT_EQ(loss.host()[0], first_loss) << what;
          EXPECT_EQ(correct.host()[0], expected.correct) << what;
        }
    }
  }
}
TEST_F(CudaLoss, BFloat16Logits) { expect_sixteen_bits<BFloat16>(); }
TEST_F(CudaLoss, Float16Logits) { expect_sixteen_bits<Float16>(); }

/// Rows of which shared memory holds a part, with partial packs, and two rows per partial sum.
template <typename T>
void expect_long_rows(Size size) {
  const Stored<T> x(random_values(size.rows * size.channels, 1, -5.0, 5.0));
  std::vector<std::int32_t> labels;
  Values onehot(x.size());
  for (std::int64_t row = 0; row < size.rows; ++row) {
    labels.push_back(static_cast<std::int32_t>((row * 7919 + size.channels - 1) % size.channels));
    onehot[static_cast<std::size_t>(row * size.channels + labels.back())] = 1.0;
  }
  const Expected expected = expected_of(size, x.values(), onehot, 0.5);
  const CudaLane lane;
  const OnDevice<T> logits = on_device(x, 0);
  const OnDevice<std::int32_t> dlabels(labels);
  const DeviceDoubles loss(1);
  const OnDevice<std::int64_t> correct(1);
  gpu().loss.softmax_cross_entropy(lane, size.rows, size.channels, logits.data(), dlabels.data(), 0.5F,
                                   logits.data(), loss.data(), correct.data());
  EXPECT_NEAR(loss.host()[0], expected.loss, kTermError * expected.magnitude) << describe(size);
  EXPECT_EQ(correct.host()[0], expected.correct) << describe(size);
  const std::vector<float> actual = widened(logits.host());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = kTermError * (std::abs(expected.dx[i]) + onehot[i]) + 1e-37;
    const double tolerance = sizeof(T) == sizeof(float) ? error : rounded_error<T>(expected.dx[i], error);
    ASSERT_NEAR(static_cast<double>(actual[i]), expected.dx[i], tolerance) << describe(size) << " " << i;
  }
}
TEST_F(CudaLoss, RowsThatSharedMemoryDoesNotHold) {
  expect_long_rows<float>({2, 60001});
  expect_long_rows<float>({1026, 1025});
  expect_long_rows<BFloat16>({2, 117001});
}

/// A row's gradient is the same in a whole batch and alone, with ignored rows before and after it; its loss
/// is, too.
template <typename T>
void expect_loss_rows_alone(Size size) {
  const Stored<T> x(random_values(size.rows * size.channels, 1, -5.0, 5.0));
  std::vector<std::int32_t> labels;
  for (std::int64_t row = 0; row < size.rows; ++row)
    labels.push_back(row % 5 == 4 ? -1 : static_cast<std::int32_t>((row * 7 + 1) % size.channels));
  const CudaLane lane;
  const OnDevice<T> logits = on_device(x, 0), gradient(size.rows * size.channels),
                    alone(size.rows * size.channels);
  const OnDevice<std::int32_t> dlabels(labels);
  const DeviceDoubles loss(1), loss_alone(1);
  const OnDevice<std::int64_t> correct(1);
  gpu().loss.softmax_cross_entropy(lane, size.rows, size.channels, logits.data(), dlabels.data(), 0.5F,
                                   gradient.data(), loss.data(), correct.data());
  double sum = 0.0;
  for (std::int64_t row = 0; row < size.rows; ++row) {
    const std::int64_t at = row * size.channels;
    gpu().loss.softmax_cross_entropy(lane, 1, size.channels, logits.data() + at, dlabels.data() + row, 0.5F,
                                     alone.data() + at, loss_alone.data(), correct.data());
    sum += loss_alone.host()[0];
  }
  expect_same(widened(alone.host()), widened(gradient.host()), describe(size));
  EXPECT_NEAR(loss.host()[0], sum, 1e-13 * sum) << describe(size);
}
TEST_F(CudaLoss, ARowDoesNotDependOnTheOtherRows) {
  // Whole packs, so that a row alone has the same ones.
  for (const Size size : {Size{40, 64}, Size{40, 1536}, Size{20, 20000}, Size{3, 60000}})
    expect_loss_rows_alone<float>(size);
  expect_loss_rows_alone<BFloat16>({20, 20000});
}

/// Logits that rise along the row: each pack has a new maximum, and the running sum is scaled each time.
TEST_F(CudaLoss, RunningMaximumThatAlwaysRises) {
  for (std::int64_t classes : {700, 30000})
    for (double step : {1e-4, 0.5}) {
      Values x;
      for (std::int64_t j = 0; j < classes; ++j)
        x.push_back(static_cast<float>(static_cast<double>(j) * step));
      x[0] = x[1] = x[40] =
          -INFINITY;  // of masked classes; the first packs of a thread may hold nothing else
      double sum = 0.0;
      for (double value : x) sum += std::exp(value - x.back());
      const CudaLane lane;
      const DeviceFloats logits(x);
      const OnDevice<std::int32_t> labels(std::vector<std::int32_t>{3});
      const DeviceDoubles loss(1);
      const OnDevice<std::int64_t> correct(1);
      gpu().loss.softmax_cross_entropy(lane, 1, classes, logits.data(), labels.data(), 1.0F, nullptr,
                                       loss.data(), correct.data());
      const double expected = std::log(sum) - (x[3] - x.back());
      EXPECT_NEAR(loss.host()[0], expected, kTermError * (1 + std::abs(expected)));
      EXPECT_EQ(correct.host()[0], 0);
    }
}

TEST_F(CudaLoss, ALossWithoutGradientWritesNoGradient) {
  const CudaLane lane;
  const DeviceFloats x(random_values(50, 3));
  const std::vector<float> before = x.host();
  const OnDevice<std::int32_t> labels(std::vector<std::int32_t>(5, 2));
  const DeviceDoubles loss(1);
  const OnDevice<std::int64_t> correct(1);
  gpu().loss.softmax_cross_entropy(lane, 5, 10, x.data(), labels.data(), 1.0F, nullptr, loss.data(),
                                   correct.data());
  expect_same(x.host(), before, "logits");
  EXPECT_GT(loss.host()[0], 0.0);
}

TEST_F(CudaLoss, NanAndInfinityPropagateAndTheLowestIndexWins) {
  for (std::int64_t classes : {10, 1500})
    for (double bad : {std::nan(""), static_cast<double>(INFINITY)})
      for (std::int64_t at : {std::int64_t{0}, classes - 1}) {
        const CudaLane lane;
        Values x = random_values(3 * classes, 4);
        x[static_cast<std::size_t>(classes + at)] = bad;
        const DeviceFloats data(x), dx(3 * classes);
        const OnDevice<std::int32_t> labels(std::vector<std::int32_t>(3, 1));
        const DeviceDoubles loss(1);
        const OnDevice<std::int64_t> correct(1);
        gpu().loss.softmax_cross_entropy(lane, 3, classes, data.data(), labels.data(), 1.0F, dx.data(),
                                         loss.data(), correct.data());
        EXPECT_TRUE(std::isnan(loss.host()[0]));
        const std::vector<float> gradient = dx.host();
        for (std::int64_t row = 0; row < 3; ++row)
          EXPECT_EQ(std::isnan(gradient[static_cast<std::size_t>(row * classes + 2)]), row == 1);
      }
  const CudaLane lane;
  const DeviceFloats ties(Values(10, 0.5));
  const DeviceDoubles loss(1);
  const OnDevice<std::int64_t> correct(1);
  for (std::int32_t label : {0, 1}) {
    const OnDevice<std::int32_t> labels(std::vector<std::int32_t>{label});
    gpu().loss.softmax_cross_entropy(lane, 1, 10, ties.data(), labels.data(), 1.0F, nullptr, loss.data(),
                                     correct.data());
    EXPECT_EQ(correct.host()[0], label == 0 ? 1 : 0);
  }
}

TEST_F(CudaLoss, LogSoftmaxAndItsGradient) {
  for (Size size : kLosses) {
    const std::int64_t count = size.rows * size.channels;
    const Floats x(random_values(count, 5, -50.0, 50.0)), dy(random_values(count, 6));
    Floats y(count), dx(count);
    const LossKernels& cpu = cpu_kernels().loss;
    cpu.log_softmax(TestLane(), size.rows, size.channels, x.data(), y.data());
    cpu.log_softmax_backward(TestLane(), size.rows, size.channels, y.data(), dy.data(), dx.data());
    const CudaLane lane;
    const DeviceFloats gx(x.values()), gdy(dy.values()), gy(count), gdx(count);
    gpu().loss.log_softmax(lane, size.rows, size.channels, gx.data(), gy.data());
    gpu().loss.log_softmax_backward(lane, size.rows, size.channels, gy.data(), gdy.data(), gdx.data());
    // Numbers of up to 100, rounded a few times; exp(y) has the same relative error.
    const double error = 4 * 100 * kRounding;
    expect_close(gy.values(), y.values(), Values(y.size(), 1.0), error, 0.0, "log_softmax " + describe(size));
    expect_close(gdx.values(), dx.values(), Values(y.size(), static_cast<double>(size.channels)), error, 0.0,
                 "log_softmax backward " + describe(size));
    gpu().loss.log_softmax(lane, size.rows, size.channels, gx.data(), gx.data());
    gpu().loss.log_softmax_backward(lane, size.rows, size.channels, gy.data(), gdy.data(), gdy.data());
    expect_same(gx.host(), gy.host(), "log_softmax in place " + describe(size));
    expect_same(gdy.host(), gdx.host(), "log_softmax backward in place " + describe(size));
    // Where an address is not aligned, the same packs are read one number at a time.
    const DeviceFloats x_elsewhere(x.values(), 1), dy_elsewhere(dy.values(), 1), y_elsewhere(count, 1);
    gpu().loss.log_softmax(lane, size.rows, size.channels, x_elsewhere.data(), y_elsewhere.data());
    gpu().loss.log_softmax_backward(lane, size.rows, size.channels, y_elsewhere.data(), dy_elsewhere.data(),
                                    x_elsewhere.data());
    expect_same(y_elsewhere.host(), gy.host(), "log_softmax elsewhere " + describe(size));
    expect_same(x_elsewhere.host(), gdx.host(), "log_softmax backward elsewhere " + describe(size));
  }
}

TEST_F(CudaLoss, SoftmaxAndItsGradient) {
  for (Size size : kLosses) {
    const std::int64_t count = size.rows * size.channels;
    const Values x = random_values(count, 5, -5.0, 5.0), dy = random_values(count, 6);
    const Values expected = reference::softmax(size.rows, size.channels, x);
    const CudaLane lane;
    const DeviceFloats dx(x), y(count), ddy(dy), x_elsewhere(x, 1), dy_elsewhere(dy, 1),
        y_elsewhere(count, 1);
    gpu().loss.softmax(lane, size.rows, size.channels, dx.data(), y.data());
    gpu().loss.softmax(lane, size.rows, size.channels, x_elsewhere.data(), y_elsewhere.data());
    expect_same(y_elsewhere.host(), y.host(), "softmax elsewhere " + describe(size));
    expect_close(y.values(), expected, expected, kTermError, 0.0, "softmax " + describe(size));
    gpu().loss.softmax(lane, size.rows, size.channels, dx.data(), dx.data());
    expect_same(dx.host(), y.host(), "softmax in place " + describe(size));
    gpu().loss.softmax_backward(lane, size.rows, size.channels, y.data(), ddy.data(), ddy.data());
    gpu().loss.softmax_backward(lane, size.rows, size.channels, y_elsewhere.data(), dy_elsewhere.data(),
                                x_elsewhere.data());
    expect_same(x_elsewhere.host(), ddy.host(), "softmax backward elsewhere " + describe(size));
    const Values out = y.values(), actual = ddy.values();
    Values gradient(x.size()), magnitude(x.size());
    for (std::int64_t row = 0; row < size.rows; ++row) {
      const auto first = static_cast<std::size_t>(row * size.channels),
                 last = first + static_cast<std::size_t>(size.channels);
      double dot = 0.0, absolute_dot = 0.0;
      for (std::size_t i = first; i < last; ++i) {
        dot += out[i] * dy[i];
        absolute_dot += std::abs(out[i] * dy[i]);
      }
      for (std::size_t i = first; i < last; ++i) {
        gradient[i] = out[i] * (dy[i] - dot);
        magnitude[i] = out[i] * (std::abs(dy[i]) + absolute_dot);
      }
    }
    expect_close(actual, gradient, magnitude, 5 * kRounding, 0.0, "softmax backward " + describe(size));
  }
}

}  // namespace
}  // namespace lockstep
