// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient gating: variables that are updated during the backward pass get the bits of an update at its end,
// on any number of ranks and threads. What needs all gradients first waits for them.
#include <gtest/gtest.h>

#include <functional>

#include "comm/self_communicator.h"
#include "config/option.h"
#include "core/range.h"
#include "kernels/lane.h"
#include "optim/optimizer_table.h"
#include "optim/update_rule.h"
#include "support/error_support.h"
#include "support/hook_run.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"
#include "train/gradients.h"
#include "train/step_numbers.h"

namespace lockstep {
namespace {

/// Two synchronised batch norms, whose gradients are complete before their second backward call.
constexpr const char* kNormalised = R"(
- conv2d: {filters: 5, kernel: 3}
- batch_norm: {momentum: 0.8}
- relu
- conv2d: {filters: 5, kernel: 3, bias: false}
- batch_norm: {momentum: 0.8}
- relu
- flatten
- dense: {units: 3}
)";
constexpr const char* kPlain = "[flatten, dense: {units: 9}, relu, dropout: {rate: 0.5}, dense: {units: 3}]";
/// Two layers with one kernel, which the lower one owns.
constexpr const char* kShared =
    "[flatten, dense: {units: 8, name: first}, relu, dense: {units: 8, name: a}, relu, "
    "dense: {units: 8, name: b, shared_with: a}, relu, dense: {units: 3}]";
constexpr const char* kTable = "[flatten, embedding: {rows: 900, units: 4}, flatten, dense: {units: 3}]";

/// Buckets so small that each variable has its own.
TinyRunOptions net(const char* layers, Gating gating = Gating::graph) {
  TinyRunOptions options{.layers = layers, .shards = 8};
  options.gating = gating;
  options.bucket_first_bytes = options.bucket_bytes = 64;
  if (layers == kTable) options.features = {7}, options.ids = 900;
  return options;
}

std::uint64_t digest(Communicator& world, const TinyRunOptions& options) {
  TinyRun run(world, options);
  EXPECT_EQ(run.trainer().gating(), options.gating) << run.trainer().gating_reason();
  for (int i = 0; i < 3; ++i) run.trainer().minimize();
  return run.variables().hash();
}

TEST(Gating, ChangesNoBits) {
  SelfCommunicator self;
  for (const char* layers : {kNormalised, kPlain, kShared, kTable}) {
    TinyRunOptions options = net(layers);
    options.average = AverageRule{};
    const std::uint64_t expected = digest(self, options);
    for (const Gating gating : {Gating::op, Gating::none})
      for (const int threads : {1, 2}) {
        TinyRunOptions own = options;
        own.gating = gating;
        own.threads = threads;
        own.overlap = (threads == 2) == (gating == Gating::op);
        EXPECT_EQ(digest(test_world(), own), expected)
            << layers << ' ' << name_of(gating) << ' ' << threads << ' ' << own.overlap;
      }
  }
}

/// Gradient descent that records where its updates end. With one thread.
class Recording final : public UpdateRule {
 public:
  struct Options {
    ScheduledNumber learning_rate;
  };
  explicit Recording(Options o) : UpdateRule(std::move(o.learning_rate)) {}
  const char* kind() const override { return "recording"; }
  void update(const KernelTable&, const Lane&, const VariableStore& variables, const float* gradients,
              Range range) const override {
    ends.push_back(range.last);
    for (std::int64_t i = range.first; i < range.last; ++i)
      variables.trainable_address()[i] -= 0.1F * gradients[i - range.first];
  }
  static inline std::vector<std::int64_t> ends;
};
constexpr ParamSpec kOptions[] = {
    option<&Recording::Options::learning_rate>("learning_rate", "0.1", kRateRange, "the rate")};
constexpr OptimizerEntry kRecording = {"recording", "a rule of this test", kOptions, make_rule<Recording>};

/// While compute() runs. Of the two layers, the last one's bias is a bucket of its own; with `wide`, its
/// kernel shares one with the bias of the first: none updates the bias alone, op waits for the layer's
/// kernel.
TEST(Gating, UpdatesVariablesOrLayers) {
  static const bool registered = (optimizer_table().add(kRecording), true);
  EXPECT_TRUE(registered);
  using Ends = std::vector<std::int64_t>;
  // dense 9 -> 3: 3 biases and 27 weights; dense 72 -> 9; each padded to 16
  const std::int64_t last_bias = 16, last_layer = 48, all = last_layer + 16 + 656;
  const auto ends = [&](Gating gating, bool wide) {
    TinyRunOptions options = net(kPlain, gating);
    options.optimizer = "recording";
    if (wide) options.bucket_bytes = 192;
    TinyRun run(test_world(), options);
    EXPECT_EQ(run.variables().dense_elements(), all);
    Recording::ends.clear();
    run.trainer().compute();
    const Ends early = Recording::ends;
    run.trainer().apply(true);
    EXPECT_EQ(Recording::ends, gating == Gating::graph ? Ends{all} : early);
    return early;
  };
  EXPECT_EQ(ends(Gating::graph, false), Ends());
  EXPECT_EQ(ends(Gating::none, false), (Ends{last_layer, all}));
  EXPECT_EQ(ends(Gating::op, false), (Ends{last_layer, all}));
  EXPECT_EQ(ends(Gating::none, true), (Ends{last_bias, all}));
  EXPECT_EQ(ends(Gating::op, true), (Ends{all}));
}

/// What needs all gradients before the first update makes the gating graph, and says why.
TEST(Gating, WaitsWhereAllGradientsAreNeeded) {
  const auto reason = [](const std::function<void(TinyRunOptions&)>& change) {
    TinyRunOptions options = net(kPlain, Gating::none);
    change(options);
    TinyRun run(test_world(), options);
    const std::uint64_t before = run.variables().hash();
    run.trainer().compute();
    EXPECT_EQ(run.variables().hash(), before);
    EXPECT_EQ(run.trainer().gating() == Gating::graph, !run.trainer().gating_reason().empty());
    return run.trainer().gating_reason();
  };
  using By = ClipRule::By;
  EXPECT_NE(reason([](auto& o) { o.clip = {.by = By::global_norm, .limit = 1}; }).find("clipping"),
            std::string::npos);
  EXPECT_NE(reason([](auto& o) { o.clip.watch = true; }).find("train.on_nan"), std::string::npos);
  EXPECT_NE(reason([](auto& o) { o.scales_loss = true; }).find("loss_scale"), std::string::npos);
  EXPECT_NE(reason([](auto& o) { o.optimizer = "lamb"; }).find("lamb"), std::string::npos);
  EXPECT_NE(reason([](auto& o) { o.optimizer = "muon"; }).find("muon"), std::string::npos);
  if (test_world().size() > 1) {
    EXPECT_NE(reason([](auto& o) { o.shard = true; }).find("optimizer.shard"), std::string::npos);
  }
}

/// Norms and the noise scale are measured from gradients alone: they are the same, and nothing waits.
TEST(Gating, MeasuresDoNotWait) {
  const auto norm = [](Gating gating) {
    TinyRunOptions options = net(kPlain, gating);
    options.clip = {.record_norm = true, .noise_scale = true};
    TinyRun run(test_world(), options);
    EXPECT_EQ(run.trainer().gating(), gating);
    for (int i = 0; i < 3; ++i) run.trainer().minimize();
    return std::pair(run.trainer().metrics().value("gradient_norm"),
                     run.trainer().numbers().noise_scale()->state()[1]);
  };
  EXPECT_GT(norm(Gating::graph).first.value(), 0);
  EXPECT_EQ(norm(Gating::none), norm(Gating::graph));
}

TEST(Gating, TooLateIsAnError) {
  const auto message = [](const std::function<void()>& action) {
    return testing::message_of(action, ErrorKind::usage);
  };
  TinyRun run(test_world(), net(kPlain, Gating::none)), plain(test_world(), net(kPlain));
  Trainer& trainer = run.trainer();
  trainer.compute();
  EXPECT_NE(message([&] { trainer.apply(false); }).find("too late"), std::string::npos);
  EXPECT_NE(message([&] { trainer.gradients(); }).find("are updated with the gradients of step 1"),
            std::string::npos);
  EXPECT_NE(message([&] { trainer.compute(); }).find("did not end"), std::string::npos);
  trainer.apply(true);
  // A program's own halves wait for all gradients.
  trainer.apply_gradients(trainer.compute_gradients());
  for (int i = 0; i < 2; ++i) plain.trainer().minimize();
  EXPECT_EQ(run.variables().hash(), plain.variables().hash());
}

/// Says what it decides.
class Deciding : public Hook {
 public:
  explicit Deciding(bool says) : Hook("deciding"), says_(says) {}
  bool decides_update() const override { return says_; }
  Verdict before_update(HookContext&, const StepResult&) override { return Verdict::skip; }

 private:
  bool says_;
};

TEST(Gating, WaitsForHooksThatDecide) {
  const auto make = [] { return std::make_unique<TestRun>(0, kHookNet, -1, Gating::none); };
  const auto silent = make(), deciding = make(), hasty = make();
  silent->session.start();
  EXPECT_EQ(silent->tiny.trainer().gating(), Gating::none);
  deciding->add<Deciding>(true);
  deciding->session.start();
  EXPECT_EQ(deciding->tiny.trainer().gating_reason(), "the hook deciding decides on updates");
  const std::uint64_t before = deciding->tiny.variables().hash();
  deciding->session.run_step();
  EXPECT_EQ(deciding->tiny.variables().hash(), before);
  hasty->add<Deciding>(false);
  hasty->session.start();
  const std::string error = testing::message_of([&] { hasty->session.run_step(); }, ErrorKind::usage);
  EXPECT_NE(error.find("Hook::decides_update()"), std::string::npos) << error;
}

}  // namespace
}  // namespace lockstep
