// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Properties of lstm, gru and the layers of lengths beyond their values (layer_cases/recurrent_cases.cpp):
// lengths, directions, stacks and dropout.
#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

#include "core/error.h"
#include "model/gradient_check.h"
#include "model/layer_runner.h"
#include "model_testing.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 5, kFeatures = 3;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
std::span<const float> part(const std::vector<float>& all, std::size_t sample, std::size_t samples) {
  const std::size_t each = all.size() / samples;
  return std::span(all).subspan(sample * each, each);
}

/// A layer that has run forward and backward, with initial values and gradients that its shape fixes.
struct Ran {
  std::unique_ptr<Layer> layer;
  std::unique_ptr<LayerRunner> run;
};
Ran ran(const std::string& yaml, const std::vector<float>& x, const std::vector<float>& lengths,
        LayerRunnerOptions options) {
  Ran made;
  made.layer = layer_from(yaml);
  const Shape sequence{kSteps, kFeatures}, length{1};
  if (!lengths.empty()) options.fixed_inputs = {1};
  made.run =
      lengths.empty()
          ? std::make_unique<LayerRunner>(*made.layer, std::initializer_list{sequence}, options)
          : std::make_unique<LayerRunner>(*made.layer, std::initializer_list{sequence, length}, options);
  made.run->input(0) = x;
  if (!lengths.empty()) made.run->input(1) = lengths;
  made.run->forward();
  for (int o = 0; o < made.run->num_outputs(); ++o) {
    auto& dy = made.run->output_gradient(o);
    const auto samples = static_cast<std::size_t>(made.run->num_samples());
    const auto one = random_floats(dy.size() / samples, 70 + static_cast<std::uint32_t>(o));
    for (std::size_t s = 0; s < samples; ++s)
      std::copy(one.begin(), one.end(), dy.begin() + static_cast<std::ptrdiff_t>(s * one.size()));
  }
  made.run->backward();
  return made;
}

const char* const kCells[] = {
    "lstm: {name: rnn, units: 4, bidirectional: true, layers: 2}",
    "gru: {name: rnn, units: 4, bidirectional: true, layers: 2}",
    "gru: {name: rnn, units: 4, bidirectional: true, layers: 2, reset_after: true}"};

TEST(Recurrent, StepsPastTheEndAreZeroAndIgnored) {
  for (const char* yaml : kCells) {
    std::vector<float> x = random_floats(2 * kSteps * kFeatures, 1);
    const Ran first = ran(yaml, x, {2, 5}, {.microshards = {2}});
    for (std::size_t i = 2 * kFeatures; i < kSteps * kFeatures; ++i) x[i] += 100.0F;
    const Ran second = ran(yaml, x, {2, 5}, {.microshards = {2}});
    for (int o = 0; o < first.run->num_outputs(); ++o)
      EXPECT_TRUE(same_bits(first.run->output(o), second.run->output(o))) << yaml << ", output " << o;
    EXPECT_TRUE(same_bits(first.run->gradients(), second.run->gradients())) << yaml;
    for (std::size_t i = 2 * 8; i < kSteps * 8; ++i) EXPECT_EQ(first.run->output(0)[i], 0.0F) << yaml;
    for (std::size_t i = 2 * kFeatures; i < kSteps * kFeatures; ++i)
      EXPECT_EQ(first.run->input_gradient(0)[i], 0.0F) << yaml;
  }
}

TEST(Recurrent, LengthZeroGivesTheInitialState) {
  for (const char* yaml : kCells) {
    const Ran made = ran(yaml, random_floats(2 * kSteps * kFeatures, 1), {0, 3}, {.microshards = {2}});
    for (int o = 0; o < made.run->num_outputs(); ++o) {
      for (const float value : part(made.run->output(o), 0, 2)) EXPECT_EQ(value, 0.0F) << yaml;
      float sum = 0;
      for (const float value : part(made.run->output(o), 1, 2)) sum += std::abs(value);
      EXPECT_GT(sum, 0.0F) << yaml;
    }
  }
}

/// The reverse direction of a sequence is the forward direction of its mirror image.
TEST(Recurrent, ReverseStartsAtEachSamplesLastStep) {
  for (const std::string cell : {"lstm", "gru"}) {
    const std::string yaml = cell + ": {name: rnn, units: 4, bidirectional: true}";
    const std::vector<float> x = random_floats(2 * kSteps * kFeatures, 1);
    const std::vector<float> lengths{3, 5};
    std::vector<float> mirrored = x;
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t t = 0, last = static_cast<std::size_t>(lengths[s]); t < last; ++t)
        for (std::size_t f = 0; f < kFeatures; ++f)
          mirrored[(s * kSteps + t) * kFeatures + f] = x[(s * kSteps + last - 1 - t) * kFeatures + f];
    const auto both = layer_from(yaml), one = layer_from(cell + ": {name: rnn, units: 4}");
    const LayerRunnerOptions options{.microshards = {2}, .fixed_inputs = {1}};
    LayerRunner whole(*both, {Shape{kSteps, kFeatures}, Shape{1}}, options);
    LayerRunner forward(*one, {Shape{kSteps, kFeatures}, Shape{1}}, options);
    for (const Variable& variable : forward.variables().variables()) {
      VariableStore &from = whole.variables(), &to = forward.variables();
      const float* values = from.value(from.find(variable.name + "_reverse"));
      std::copy_n(values, variable.shape.num_elements(), to.value(to.find(variable.name)));
    }
    whole.input(0) = x, whole.input(1) = lengths;
    forward.input(0) = mirrored, forward.input(1) = lengths;
    whole.forward();
    forward.forward();
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(whole.output(1)[s * 8 + 4 + k], forward.output(1)[s * 4 + k]) << cell;
        for (std::size_t t = 0, last = static_cast<std::size_t>(lengths[s]); t < last; ++t)
          EXPECT_EQ(whole.output(0)[(s * kSteps + last - 1 - t) * 8 + 4 + k],
                    forward.output(0)[(s * kSteps + t) * 4 + k])
              << cell;
      }
  }
}

/// What a microshard skips because none of its samples is that long does not show in the bits.
TEST(Recurrent, SkippedStepsDoNotChangeBits) {
  for (const char* yaml : kCells) {
    const std::vector<float> x = random_floats(2 * kSteps * kFeatures, 1);
    const Ran with = ran(yaml, x, {3, 2}, {.microshards = {2}});
    const Ran without = ran(yaml, x, {3, 5}, {.microshards = {2}});
    for (int o = 0; o < with.run->num_outputs(); ++o)
      EXPECT_TRUE(same_bits(part(with.run->output(o), 0, 2), part(without.run->output(o), 0, 2)))
          << yaml << ", output " << o;
    EXPECT_TRUE(
        same_bits(part(with.run->input_gradient(0), 0, 2), part(without.run->input_gradient(0), 0, 2)))
        << yaml;
  }
}

TEST(Recurrent, StackEqualsItsLayersInSequence) {
  const auto both = layer_from("lstm: {name: rnn, units: 3, layers: 2}");
  const auto first = layer_from("lstm: {name: rnn, units: 3}");
  const auto second = layer_from("lstm: {name: other, units: 3}");
  LayerRunner whole(*both, {Shape{kSteps, kFeatures}}), lower(*first, {Shape{kSteps, kFeatures}}),
      upper(*second, {Shape{kSteps, 3}});
  for (const std::string part : {"kernel", "bias"}) {
    VariableStore &from = whole.variables(), &to = upper.variables();
    const VariableId source = from.find("rnn/" + part + "_1"), target = to.find("other/" + part + "_0");
    std::copy_n(from.value(source), from[source].shape.num_elements(), to.value(target));
  }
  whole.input(0) = lower.input(0) = random_floats(2 * kSteps * kFeatures, 1);
  whole.forward();
  lower.forward();
  upper.input(0) = lower.output(0);
  upper.forward();
  for (int o = 0; o < 3; ++o) EXPECT_TRUE(same_bits(whole.output(o), upper.output(o))) << "output " << o;
}

const char* const kDropouts[] = {
    "lstm: {name: rnn, units: 8, layers: 2, dropout: 0.5}",
    "lstm: {name: rnn, units: 8, layers: 2, dropout: 0.5, variational: true, bidirectional: true}",
    "lstm: {name: rnn, units: 8, recurrent_dropout: 0.5}",
    "gru: {name: rnn, units: 8, recurrent_dropout: 0.5, dropout: 0.3, variational: true}",
    "gru: {name: rnn, units: 8, recurrent_dropout: 0.5, reset_after: true}"};

TEST(RecurrentDropout, MasksDoNotDependOnTheMicroshards) {
  const std::vector<float> x = random_floats(4 * kSteps * kFeatures, 1);
  for (const char* yaml : kDropouts) {
    const Ran whole = ran(yaml, x, {}, {.microshards = {2, 2}}),
              cut = ran(yaml, x, {}, {.microshards = {1, 0, 3}});
    for (int o = 0; o < whole.run->num_outputs(); ++o)
      expect_close(cut.run->output(o), doubles(whole.run->output(o)), 1e-6, yaml);
    expect_close(cut.run->input_gradient(0), doubles(whole.run->input_gradient(0)), 1e-5, yaml);
    expect_close(cut.run->gradients(), doubles(whole.run->gradients()), 1e-5, yaml);
  }
}

TEST(RecurrentDropout, MasksChangeInEachStep) {
  const std::vector<float> x = random_floats(2 * kSteps * kFeatures, 1);
  for (const char* yaml : kDropouts) {
    const Ran one = ran(yaml, x, {}, {.step = 1}), again = ran(yaml, x, {}, {.step = 1}),
              other = ran(yaml, x, {}, {.step = 2});
    EXPECT_TRUE(same_bits(one.run->output(0), again.run->output(0))) << yaml;
    EXPECT_FALSE(same_bits(one.run->output(0), other.run->output(0))) << yaml;
  }
}

TEST(RecurrentDropout, IsAbsentInInference) {
  for (const std::string options :
       {"dropout: 0.5", "dropout: 0.5, variational: true", "recurrent_dropout: 0.5"}) {
    const auto with = layer_from("lstm: {name: rnn, units: 4, layers: 2, " + options + "}"),
               without = layer_from("lstm: {name: rnn, units: 4, layers: 2}");
    LayerRunner dropping(*with, {Shape{kSteps, kFeatures}}, {.training = false});
    LayerRunner plain(*without, {Shape{kSteps, kFeatures}}, {.training = false});
    dropping.input(0) = plain.input(0) = random_floats(2 * kSteps * kFeatures, 1);
    dropping.forward();
    plain.forward();
    for (int o = 0; o < 3; ++o) EXPECT_TRUE(same_bits(dropping.output(o), plain.output(o))) << options;
  }
}

TEST(RecurrentDropout, GradientsMatchTheMaskedNet) {
  for (const char* yaml : kDropouts) {
    const auto layer = layer_from(yaml);
    for (const GradientCheck& check : check_layer(*layer, {Shape{kSteps, kFeatures}}))
      EXPECT_TRUE(check.passed()) << yaml << "\n" << check.to_string();
  }
}

TEST(RecurrentDropout, VariationalMaskIsSharedByAllSteps) {
  const Ran made = ran("lstm: {name: rnn, units: 4, dropout: 0.5, variational: true}",
                       random_floats(8 * kSteps * kFeatures, 1), {}, {.microshards = {8}});
  const std::vector<float>& dx = made.run->input_gradient(0);
  std::size_t dropped = 0;
  bool samples_differ = false;
  for (std::size_t s = 0; s < 8; ++s)
    for (std::size_t f = 0; f < kFeatures; ++f) {
      const bool zero = dx[s * kSteps * kFeatures + f] == 0.0F;
      dropped += zero ? 1 : 0;
      samples_differ = samples_differ || zero != (dx[f] == 0.0F);
      for (std::size_t t = 0; t < kSteps; ++t)
        EXPECT_EQ(dx[(s * kSteps + t) * kFeatures + f] == 0.0F, zero) << "sample " << s << ", step " << t;
    }
  EXPECT_TRUE(samples_differ);
  EXPECT_GT(dropped, 4U);
  EXPECT_LT(dropped, 20U);
}

/// A unit whose state never reaches the next step has no gradient in the rows of the kernel that it meets.
TEST(RecurrentDropout, StateMaskIsSharedByAllSteps) {
  const Ran made = ran("lstm: {name: rnn, units: 8, recurrent_dropout: 0.5}",
                       random_floats(kSteps * kFeatures, 1), {}, {.microshards = {1}});
  const auto gradient = made.run->gradient(made.run->variables().find("rnn/kernel_0"));
  int dropped = 0;
  for (std::size_t unit = 0; unit < 8; ++unit) {
    const auto row = gradient.subspan((kFeatures + unit) * 32, 32);
    dropped += std::all_of(row.begin(), row.end(), [](float g) { return g == 0.0F; }) ? 1 : 0;
  }
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, 8);
}

TEST(Recurrent, InitialBiasesDependOnTheCell) {
  for (const auto& [yaml, variable, value] :
       {std::tuple("gru: {name: rnn, units: 2}", "rnn/gates_bias_0", 1.0F),
        std::tuple("gru: {name: rnn, units: 2}", "rnn/candidate_bias_0", 0.0F),
        std::tuple("lstm: {name: rnn, units: 2}", "rnn/bias_0", 0.0F)}) {
    const auto layer = layer_from(yaml);
    LayerRunner run(*layer, {Shape{kSteps, kFeatures}});
    const VariableId id = run.variables().find(variable);
    ASSERT_NE(id, VariableId::none) << variable;
    for (std::int64_t i = 0; i < run.variables()[id].shape.num_elements(); ++i)
      EXPECT_EQ(run.variables().value(id)[i], value) << variable;
  }
}

/// What infer() and the options refuse, by a part of the message.
TEST(Recurrent, ErrorsStateWhatDoesNotFit) {
  struct Wrong {
    std::string yaml;
    std::vector<Shape> inputs;
    std::string said;
  };
  const std::vector<Wrong> all{
      {"lstm: {name: rnn, units: 2}", {Shape{7}}, "layer rnn: lstm takes steps x features per sample, not"},
      {"gru: {name: rnn, units: 2}", {Shape{2, 3}, Shape{2}}, "layer rnn: gru's second input is the length"},
      {"gru: {name: rnn, units: 2}", {Shape{2, 3}, Shape{1}, Shape{1}}, "not 3 inputs"},
      {"lstm: {name: rnn, units: 2, dropout: 0.5}", {Shape{2, 3}}, "applies between stacked layers"},
      {"last_step: {name: end}", {Shape{7}}, "layer end: last_step takes steps x features per sample, not"},
      {"last_step: {name: end}",
       {Shape{2, 3}, Shape{3}},
       "layer end: last_step's second input is the length"},
      {"sequence_length: {name: many}",
       {Shape{2, 3}},
       "layer many: sequence_length takes one input of rank 1"},
      {"masking: {name: hide}", {Shape{2}}, "layer hide: masking takes one input of steps x features"}};
  for (const Wrong& wrong : all) try {
      layer_from(wrong.yaml)->infer(wrong.inputs);
      ADD_FAILURE() << wrong.yaml << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      EXPECT_NE(std::string(error.what()).find(wrong.said), std::string::npos) << error.what();
    }
}

TEST(Recurrent, InvalidLengthNamesLayerSampleAndValue) {
  for (const std::string yaml :
       {"lstm: {name: seq, units: 2}", "gru: {name: seq, units: 2}", "last_step: {name: seq}"})
    for (const float length : {-1.0F, 2.5F, 6.0F, std::numeric_limits<float>::quiet_NaN()}) {
      const auto layer = layer_from(yaml);
      LayerRunner run(*layer, {Shape{kSteps, kFeatures}, Shape{1}},
                      {.microshards = {2, 1}, .fixed_inputs = {1}});
      run.input(1) = {1, 2, length};
      try {
        run.forward();
        ADD_FAILURE() << yaml << " took the length " << length;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data);
        const std::string said = fmt::format("layer seq: sample 2 of the batch has length {}", length);
        EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
      }
    }
}

TEST(Masking, MaskedStepsGetNoGradient) {
  const auto layer = layer_from("masking: {value: 9}");
  LayerRunner run(*layer, {Shape{2, 2}}, {.microshards = {1}});
  run.input(0) = {9, 9, 9, 1};
  run.forward();
  EXPECT_EQ(run.output(0), (std::vector<float>{0, 0, 9, 1}));
  EXPECT_EQ(run.output(1), (std::vector<float>{0, 1}));
  run.output_gradient(0) = {1, 2, 3, 4};
  run.output_gradient(1) = {5, 6};
  run.backward();
  EXPECT_EQ(run.input_gradient(0), (std::vector<float>{0, 0, 3, 4}));
}

}  // namespace
}  // namespace lockstep
