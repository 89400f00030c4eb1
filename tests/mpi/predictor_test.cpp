// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A Predictor has the bits of Estimator::predict(), which are those of `lockstep predict`, for any number of
// samples at a time, on any rank, in any number of threads.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <thread>

#include "api/predictor.h"
#include "core/error.h"
#include "support/error_support.h"
#include "support/predictor_run.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;

constexpr std::int64_t kSamples = 48;  // full batches of small_run()

/// A run of small_model with two trained steps, and what it predicts.
struct SmallRun {
  explicit SmallRun(const std::string& name)
      : run_dir(fresh_run_dir(name)), estimator(test_environment(), small_model, small_run(run_dir)) {
    estimator.train(class_input(), {.max_steps = 2});
    samples = class_samples(kSamples).features;
    expected = streamed(estimator, class_input("other", kSamples));
  }
  /// The prediction of rank 0 is that of the stream.
  void expect_same(const std::vector<float>& predicted, const std::string& what) const {
    if (test_world().rank() == 0) {
      EXPECT_TRUE(same_bits(predicted, expected)) << what;
    }
  }
  std::string run_dir;
  Estimator estimator;
  std::vector<float> samples, expected;
};

std::vector<float> predicted(Predictor& net, const std::vector<float>& samples, std::int64_t at_a_time) {
  const std::int64_t in = net.inputs()[0].values(), out = net.outputs()[0].values();
  const std::int64_t count = std::ssize(samples) / in;
  std::vector<float> all(static_cast<std::size_t>(count * out));
  for (std::int64_t i = 0; i < count; i += at_a_time) {
    const std::int64_t n = std::min(at_a_time, count - i);
    net.predict(InputValues(samples.data() + i * in, static_cast<std::size_t>(n * in)),
                OutputValues(all.data() + i * out, static_cast<std::size_t>(n * out)), n);
  }
  return all;
}

TEST(Predictor, HasTheBitsOfPredictForAnyNumberOfSamplesAtATime) {
  SmallRun run("predictor_bits");
  Predictor net = run.estimator.predictor();
  ASSERT_EQ(net.inputs().size(), 1U);
  EXPECT_EQ(net.inputs()[0].name, "features");
  EXPECT_EQ(net.inputs()[0].shape, (Shape{6}));
  ASSERT_EQ(net.outputs().size(), 1U);
  EXPECT_EQ(net.outputs()[0].name, "outputs");
  EXPECT_EQ(net.outputs()[0].shape, (Shape{3}));
  EXPECT_EQ(net.outputs()[0].quantity, "probability");
  EXPECT_EQ(net.global_step(), 2);
  if (test_world().rank() == 0) {
    EXPECT_NE(run.expected[0], run.expected[3]);
  }
  for (const std::int64_t at_a_time : {std::int64_t{1}, std::int64_t{3}, std::int64_t{7}, kSamples})
    run.expect_same(predicted(net, run.samples, at_a_time), fmt::format("{} at a time", at_a_time));
  for (const std::int64_t batch_size : {1, 5, 1000}) {
    Predictor other = run.estimator.predictor({.batch_size = batch_size});
    run.expect_same(predicted(other, run.samples, kSamples), fmt::format("batches of {}", batch_size));
  }
}

TEST(Predictor, TakesAndGivesDouble) {
  SmallRun run("predictor_double");
  Predictor net = run.estimator.predictor();
  const std::vector<double> samples(run.samples.begin(), run.samples.end());
  std::vector<double> outputs(kSamples * 3);
  net.predict(samples, outputs, kSamples);
  run.expect_same(std::vector<float>(outputs.begin(), outputs.end()), "double");
}

TEST(Predictor, LoadsRunCheckpointAndExportedFolder) {
  SmallRun run("predictor_paths");
  const std::string exported = run.estimator.export_model();
  Predictor first = run.estimator.predictor();
  for (const std::string& path : {run.run_dir, first.checkpoint(), exported}) {
    Predictor net = Predictor::load(path);
    run.expect_same(predicted(net, run.samples, kSamples), path);
  }
  run.estimator.train(class_input(), {.max_steps = 4});
  EXPECT_EQ(Predictor::load(run.run_dir).global_step(), 4);
  Predictor before = Predictor::load(run.run_dir, {.checkpoint = "2"});
  EXPECT_EQ(before.global_step(), 2);
  run.expect_same(predicted(before, run.samples, kSamples), "the step before");
}

// More threads than one block of lanes has.
TEST(Predictor, ClonesOfThreadsHaveTheSameBits) {
  SmallRun run("predictor_threads");
  const Predictor net = run.estimator.predictor();
  Predictor alone = net.clone();
  const std::vector<float> expected = predicted(alone, run.samples, kSamples);
  for (const int threads : {2, 4, 11}) {
    std::vector<int> wrong(static_cast<std::size_t>(threads), -1);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([&, i] {
        Predictor own = net.clone();
        int differ = 0;
        for (int repeat = 0; repeat < 200; ++repeat)
          differ += same_bits(predicted(own, run.samples, 4 * (1 + (i + repeat) % 5)), expected) ? 0 : 1;
        wrong[static_cast<std::size_t>(i)] = differ;
      });
    for (std::thread& thread : all) thread.join();
    EXPECT_THAT(wrong, ::testing::Each(0)) << threads << " threads";
  }
}

TEST(Predictor, CloneOutlivesItsOrigin) {
  SmallRun run("predictor_clone");
  std::optional<Predictor> net = run.estimator.predictor();
  Predictor clone = net->clone();
  net.reset();
  Predictor moved = std::move(clone);
  run.expect_same(predicted(moved, run.samples, 5), "a clone");
}

TEST(Predictor, WrongSizesAndNamesAreErrorsThatSayWhatFits) {
  SmallRun run("predictor_errors");
  Predictor net = run.estimator.predictor();
  std::vector<float> x(12), y(6);
  const auto message = [&](auto body) { return message_of(body, ErrorKind::usage); };
  EXPECT_THAT(message([&] { net.predict(x, y); }),
              AllOf(HasSubstr("input features has 12 values"), HasSubstr("1 sample of 6 values")));
  EXPECT_THAT(message([&] { net.predict(x, std::span(y).first(5), 2); }),
              AllOf(HasSubstr("output outputs has 5 values"), HasSubstr("2 samples of 3 values"),
                    HasSubstr("take 6")));
  EXPECT_THAT(message([&] { net.predict(x, y, -1); }), HasSubstr("-1 samples"));
  EXPECT_THAT(message([&] {
                net.predict({{"x", x}}, {{"outputs", y}}, 2);
              }),
              AllOf(HasSubstr("no input 'x'"), HasSubstr("It has features")));
  EXPECT_THAT(message([&] { net.predict({{"features", x}}, {{"y", y}}, 2); }), HasSubstr("no output 'y'"));
  EXPECT_THAT(message([&] { net.predict({}, {{"outputs", y}}, 2); }), HasSubstr("'features' is not given"));
  const InputValues two[] = {x, x};
  const OutputValues one[] = {y};
  EXPECT_THAT(message([&] { net.predict(two, one, 2); }),
              HasSubstr("2 inputs are given, and the model has 1"));
  net.predict(x, y, 2);  // it works after errors
  net.predict(std::vector<float>(), std::span<float>(), 0);
  EXPECT_THAT(message_of([&] { Predictor::load(run.run_dir, {.checkpoint = "77"}); }, ErrorKind::checkpoint),
              HasSubstr("no checkpoint of step 77"));
  EXPECT_THAT(message([&] { Predictor::load(run.run_dir, {.batch_size = -2}); }),
              HasSubstr("batch_size is -2"));
}

TEST(Predictor, LeavesTheThreadsOpenMpSettingAsItWas) {
  auto* const max_threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  auto* const set_threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (max_threads == nullptr || set_threads == nullptr) GTEST_SKIP() << "oneDNN has no OpenMP runtime";
  SmallRun run("predictor_openmp");
  set_threads(3);
  Predictor net = Predictor::load(run.run_dir);
  EXPECT_EQ(max_threads(), 3);
  predicted(net, run.samples, 5);
  EXPECT_EQ(max_threads(), 3);
  const Predictor clone = net.clone();
  EXPECT_EQ(max_threads(), 3);
  set_threads(1);
}

TEST(Predictor, ExportsToOnnxOnOneRankWithOneResult) {
  SmallRun run("predictor_onnx");
  const std::string file = run.run_dir + "/net.onnx";
  const OnnxExport done = run.estimator.export_onnx(file, {.with_normalisation = true});
  EXPECT_EQ(done.global_step, 2);
  EXPECT_EQ(done.layers, 4);
  if (test_world().rank() != 0) return;
  EXPECT_GT(std::filesystem::file_size(file), 100U);
  EXPECT_EQ(export_onnx(run.run_dir, run.run_dir + "/again.onnx").layers, 4);
}

}  // namespace
}  // namespace lockstep
