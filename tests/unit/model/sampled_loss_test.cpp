// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Properties of layers over ids that the layer cases do not test: draws do not depend on the microshards,
// evaluation over all classes, counts from files, and error messages.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>

#include "model/layer_runner.h"
#include "model/layers/class_distribution.h"
#include "model_testing.h"

namespace lockstep {
namespace {

std::string message_of(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

void expect_message(const std::function<void()>& action, ErrorKind kind, const std::string& part) {
  const std::string message = message_of(action, kind);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

/// Six samples in the given microshards, at a step.
struct Sampled {
  Sampled(const std::string& yaml, std::vector<std::int64_t> microshards, std::int64_t step,
          bool training = true)
      : layer(layer_from(yaml)),
        run(*layer, {Shape{5}, Shape{1}},
            {.microshards = std::move(microshards),
             .training = training,
             .fixed_inputs = {1},
             .step = step}) {
    run.input(0) = random_floats(30, 1);
    run.input(1) = {0, 3, 29, 7, 3, 0};
    run.forward();
  }
  std::unique_ptr<Layer> layer;
  LayerRunner run;
};

TEST(SampledLosses, DrawsDependOnTheStepNotOnTheMicroshards) {
  for (const char* yaml : {"nce: {classes: 30, sampled: 6}", "sampled_softmax: {classes: 30, sampled: 6}",
                           "negative_sampling: {classes: 30, negatives: 4}"}) {
    const Sampled whole(yaml, {6}, 3), cut(yaml, {1, 0, 3, 2}, 3), later(yaml, {6}, 4);
    EXPECT_NE(whole.run.output(), later.run.output()) << yaml;
    ASSERT_EQ(cut.run.output().size(), 6U);
    // The products of a microshard may round differently from those of the batch; other classes would differ
    // much more.
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(cut.run.output()[i], whole.run.output()[i], 1e-5F * std::abs(whole.run.output()[i]))
          << yaml;
  }
}

TEST(SampledLosses, EvaluateOverAllClasses) {
  for (const bool softmax : {false, true}) {
    const std::string layer = softmax ? "sampled_softmax" : "nce";
    Sampled test(layer + ": {classes: 30, sampled: 6, name: loss}", {2, 0, 4}, 0, false);
    VariableStore& variables = test.run.variables();
    float* biases = variables.value(variables.find("loss/biases"));
    for (std::size_t c = 0; c < 30; ++c) biases[c] = random_floats(30, 9)[c];
    test.run.forward();
    const float* weights = variables.value(variables.find("loss/weights"));
    for (std::size_t s = 0; s < 6; ++s) {
      double sum = 0, loss = 0;
      for (std::size_t c = 0; c < 30; ++c) {
        double z = static_cast<double>(biases[c]);
        for (std::size_t u = 0; u < 5; ++u)
          z += static_cast<double>(test.run.input(0)[s * 5 + u]) * static_cast<double>(weights[c * 5 + u]);
        const bool wanted = static_cast<float>(c) == test.run.input(1)[s];
        sum += std::exp(z);
        loss += softmax ? (wanted ? -z : 0.0) : std::log1p(std::exp(wanted ? -z : z));
      }
      if (softmax) loss += std::log(sum);
      EXPECT_NEAR(static_cast<double>(test.run.output()[s]), loss, 1e-5 * loss) << layer;
    }
  }
}

TEST(SampledLosses, RejectInvalidOptions) {
  expect_message([] { layer_from("nce: {classes: 9, sampled: 5}"); }, ErrorKind::config, "at most half");
  expect_message([] { layer_from("nce: {classes: 99999999, sampled: 5}"); }, ErrorKind::config, "float32");
  const std::vector<Shape> one{Shape{5}}, deep{Shape{2, 5}, Shape{1}}, two{Shape{5}, Shape{2}};
  expect_message([&] { layer_from("sampled_softmax: {classes: 9, sampled: 2, name: top}")->infer(one); },
                 ErrorKind::config, "layer top: sampled_softmax takes two inputs");
  expect_message([&] { layer_from("nce: {classes: 9, sampled: 2}")->infer(deep); }, ErrorKind::config, "2x5");
  expect_message([&] { layer_from("negative_sampling: {classes: 9}")->infer(two); }, ErrorKind::config,
                 "one target");
  for (const char* yaml :
       {"nce: {classes: 29, sampled: 6, name: top}", "negative_sampling: {classes: 29, name: top}"})
    for (bool training : {true, false})
      expect_message(
          [&] {
            Sampled(yaml, {2, 4}, 0, training);
          },
          ErrorKind::data,
          "layer top: sample 2 of the global batch has the target 29, but classes are 0 to 28");
}

class CountsFile : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }
  void TearDown() override { std::remove(path_.c_str()); }
  std::string path_ = testing::TempDir() + "lockstep_class_counts_" + std::to_string(getpid()) + ".txt";
};

TEST_F(CountsFile, ProbabilitiesArePowersOfTheCounts) {
  write("the\t16\na b\t81\nrare\t0\n");
  const std::vector<double> p = unigram_probabilities(path_, 5, 0.75);
  ASSERT_EQ(p.size(), 5U);
  EXPECT_DOUBLE_EQ(p[0], 8.0 / 35);
  EXPECT_DOUBLE_EQ(p[1], 27.0 / 35);
  EXPECT_EQ(p[2] + p[3] + p[4], 0.0);
  const DeviceDistribution distribution(cpu_device(), p);
  std::vector<float> ids(1000);
  cpu_kernels().sampling.draw_each(Lane{}, distribution.get(), {1, 2, 3}, 1, 1000, 0, ids.data());
  int first = 0;
  for (float id : ids) {
    ASSERT_LT(id, 2.0F) << "a class that is never to be drawn";
    first += id == 0.0F ? 1 : 0;
  }
  EXPECT_NEAR(first, 1000 * 8 / 35, 60);
}

TEST_F(CountsFile, ErrorNamesTheLine) {
  const auto read = [&] { unigram_probabilities(path_, 2, 0.75); };
  expect_message([] { unigram_probabilities("/no/such/file", 2, 1); }, ErrorKind::data, "/no/such/file");
  write("the\t16\nof 3\n");
  expect_message(read, ErrorKind::data, "line 2: 'of 3' is not a word, a tab and a count");
  write("the\t-1\n");
  expect_message(read, ErrorKind::data, "line 1");
  write("a\t1\nb\t1\nc\t1\n");
  expect_message(read, ErrorKind::data, "line 3: more lines than the 2 classes");
  write("a\t0\n");
  expect_message(read, ErrorKind::data, "counts no class");
}

TEST(LogUniform, FollowsZipfsLawAndSumsToOne) {
  const std::vector<double> p = log_uniform_probabilities(1000);
  double sum = 0;
  for (double value : p) sum += value;
  EXPECT_NEAR(sum, 1.0, 1e-12);
  EXPECT_NEAR(p[0], std::log(2.0) / std::log(1001.0), 1e-15);
  EXPECT_NEAR(p[999], std::log(1001.0 / 1000.0) / std::log(1001.0), 1e-15);
}

TEST(Embedding, RejectsIdsOutOfRange) {
  const auto layer = layer_from("embedding: {rows: 4, units: 2, name: words}");
  LayerRunner run(*layer, {Shape{3}}, {.microshards = {2, 1}, .fixed_inputs = {0}});
  run.input(0) = {0, 1, 2, 3, 3, 3, 0, 4, 0};
  expect_message([&] { run.forward(); }, ErrorKind::data,
                 "layer words: sample 2 of the global batch has the id 4 at position 1, but ids are 0 to 3");
  run.input(0) = {0, 1, 2, 3, 1.5F, -1, 0, 0, 0};
  expect_message([&] { run.forward(); }, ErrorKind::data,
                 "sample 1 of the global batch has the id 1.5 at position 1");
  expect_message([] { layer_from("embedding: {rows: 4, units: 2, padding_index: 4}"); }, ErrorKind::config,
                 "4 is not one of the 4 rows");
  expect_message([] { layer_from("embedding: {rows: 16777216, units: 2}"); }, ErrorKind::config, "float32");
}

TEST(Attention, RejectsInvalidInputs) {
  const auto infer = [](const std::string& options, std::vector<Shape> inputs) {
    return [=] { layer_from("attention: {name: heads, " + options + "}")->infer(inputs); };
  };
  expect_message([] { layer_from("attention: {units: 5, heads: 2}"); }, ErrorKind::config,
                 "5 units are not a multiple of 2 heads");
  expect_message(infer("units: 4", {Shape{4}}), ErrorKind::config, "layer heads: attention takes a sequence");
  expect_message(infer("units: 4", {Shape{3, 4}, Shape{2}}), ErrorKind::config, "it got 3x4, 2");
  expect_message(infer("units: 4", {Shape{3, 4}, Shape{3, 4}, Shape{3, 4}}), ErrorKind::config, "it got");
  expect_message(infer("units: 4, causal: true", {Shape{3, 4}, Shape{3, 4}}), ErrorKind::config,
                 "cannot be causal");
  const auto layer = layer_from("attention: {name: heads, units: 4}");
  LayerRunner run(*layer, {Shape{3, 4}, Shape{1}}, {.microshards = {1, 1}, .fixed_inputs = {1}});
  run.input(1) = {3, 4};
  expect_message([&] { run.forward(); }, ErrorKind::data,
                 "layer heads: sample 1 of the batch has length 4, which is not a whole number from 0 to 3");
  expect_message([] { layer_from("positional_embedding: {kind: rotary}"); }, ErrorKind::config, "sinusoidal");
  const std::vector<Shape> flat{Shape{4}};
  expect_message([&] { layer_from("positional_embedding")->infer(flat); }, ErrorKind::config,
                 "steps x features per sample, not 4");
}

}  // namespace
}  // namespace lockstep
