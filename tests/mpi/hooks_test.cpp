// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The effects of the built-in hooks, on any number of ranks.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "api/launch.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/hooks/early_stopping_hook.h"
#include "session/hooks/function_hooks.h"
#include "session/hooks/nan_guard_hook.h"
#include "session/hooks/stop_hooks.h"
#include "session/hooks/straggler_hook.h"
#include "support/error_support.h"
#include "support/hook_run.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(StopHooks, AfterStepsCountsAcrossRecoveries) {
  TestRun run(1);
  int failures = 0;
  run.add<At>("after_run", 0, 2, [&](HookContext&) {
    if (++failures == 1) throw TransientError(ErrorKind::data, "once");
  });
  run.add<StopAfterStepsHook>(4);
  run.run();
  EXPECT_EQ(run.session.global_step(), 4);
}

TEST(StopHooks, AfterEpochs) {
  TestRun run;
  run.add<StopAfterEpochsHook>(2);
  run.run();
  EXPECT_EQ(run.session.global_step(), 8);  // 60 samples in batches of 16
}

TEST(StopHooks, AfterSecondsUsesTheChiefsClock) {
  TestRun run;
  run.add<StopAfterSecondsHook>(0.01);
  run.run();
  EXPECT_GE(run.session.global_step(), 1);
}

void poison(TestRun& run, std::int64_t step) {
  run.add<FeedHook>("poison", [step](std::int64_t now, const Microshard& m, float* features, Labels&) {
    if (now == step && m.first_sample == 0) features[0] = std::numeric_limits<float>::quiet_NaN();
  });
}

TEST(NanGuard, ErrorComesBeforeTheUpdate) {
  TestRun run, before;
  before.add<StopAtStepHook>(3);
  before.run();
  poison(run, 3);
  run.add<NanGuardHook>(GuardAction::error);
  run.add<StopAtStepHook>(6);
  try {
    run.run();
    FAIL() << "no error";
  } catch (const SharedError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_THAT(error.what(), HasSubstr("the loss of step 4 is nan"));
  }
  const auto a = run.tiny.variables().trainable_values(), b = before.tiny.variables().trainable_values();
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
}

TEST(NanGuard, StopAndSkipKeepVariablesFinite) {
  TestRun stopped;
  poison(stopped, 3);
  stopped.add<NanGuardHook>(GuardAction::stop);
  stopped.add<StopAtStepHook>(6);
  stopped.run();
  EXPECT_EQ(stopped.session.global_step(), 4);

  TestRun skipped;
  poison(skipped, 3);
  skipped.add<NanGuardHook>(GuardAction::skip);
  skipped.add<StopAtStepHook>(6);
  skipped.run();
  EXPECT_EQ(skipped.session.global_step(), 6);
  for (const TestRun* run : {&stopped, &skipped}) {
    auto& variables = const_cast<TestRun*>(run)->tiny.variables();
    for (const auto values : {variables.trainable_values(), variables.other_values()})
      EXPECT_TRUE(std::ranges::all_of(values, [](float v) { return std::isfinite(v); }));
  }
}

/// Runs twelve steps with a loss that jumps at steps 9 and 10. Returns the last step, and whether the
/// variables changed in the spike.
std::int64_t end_with_spikes(double factor, GuardAction action, bool& moved) {
  TestRun run(0, "[flatten, dense: {units: 3}]");
  run.add<FeedHook>("spike", [](std::int64_t step, const Microshard& m, float* features, Labels&) {
    for (std::int64_t i = 0; step >= 8 && step < 10 && i < m.n * 72; ++i)
      features[i] = 1e4F * static_cast<float>(i % 7 - 3);
  });
  run.add<LossSpikeHook>(factor, 5, action);
  std::uint64_t before = 0;
  run.add<At>("before_run", -1, 8, [&](HookContext& s) { before = s.variables().hash(); });
  run.add<At>("after_run", -1, 9, [&](HookContext& s) { moved = s.variables().hash() != before; });
  run.add<StopAtStepHook>(12);
  run.run();
  return run.session.global_step();
}

TEST(GradientGuard, NeedsStepsThatMeasureGradients) {
  TestRun run;
  run.add<GradientGuardHook>(GuardAction::error);
  run.add<StopAtStepHook>(1);
  try {
    run.run();
    FAIL() << "no error";
  } catch (const SharedError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug);
    EXPECT_THAT(error.what(), HasSubstr("gradient_guard"));
  }
}

TEST(LossSpike, StopsSkipsOrWarns) {
  bool moved = true;
  EXPECT_EQ(end_with_spikes(3, GuardAction::stop, moved), 9);
  EXPECT_FALSE(moved);
  EXPECT_EQ(end_with_spikes(3, GuardAction::skip, moved), 12);
  EXPECT_FALSE(moved);
  EXPECT_EQ(end_with_spikes(3, GuardAction::warn, moved), 12);
  EXPECT_TRUE(moved);
  EXPECT_EQ(end_with_spikes(1e9, GuardAction::stop, moved), 12) << "no spike by this factor";
  EXPECT_THROW(end_with_spikes(3, GuardAction::error, moved), SharedError);
}

/// Publishes a given metric after every step.
class Metric : public Hook {
 public:
  explicit Metric(std::vector<double> values) : Hook("metric"), values_(std::move(values)) {}
  void after_run(HookContext& s, const StepResult& r) override {
    s.eval_metrics().note("eval/loss", r.step,
                          values_[static_cast<std::size_t>(r.step - 1) % values_.size()]);
  }

 private:
  std::vector<double> values_;
};

std::int64_t end_with(std::vector<double> values, std::unique_ptr<Hook> hook) {
  TestRun run;
  run.add<Metric>(std::move(values));
  run.session.add(std::move(hook));
  run.add<StopAtStepHook>(10);
  run.run();
  return run.session.global_step();
}

TEST(EarlyStopping, StopsAtAThreshold) {
  const auto hook = [](bool higher, std::int64_t min_steps) {
    return std::make_unique<StopAtThresholdHook>("s", "eval/loss", higher, 0.5, min_steps);
  };
  EXPECT_EQ(end_with({0.1, 0.5, 0.6, 0.7}, hook(true, 0)), 3) << "0.5 is not above 0.5";
  EXPECT_EQ(end_with({0.1, 0.5, 0.6, 0.7}, hook(true, 4)), 4);
  EXPECT_EQ(end_with({0.9, 0.5, 0.4, 0.7}, hook(false, 0)), 3);
  EXPECT_EQ(end_with({0.9}, hook(false, 0)), 10);
}

TEST(EarlyStopping, StopsWithoutProgress) {
  const auto hook = [](bool increase, std::int64_t steps, std::int64_t min_steps = 0) {
    return std::make_unique<StopWithoutProgressHook>("s", "eval/loss", increase, steps, min_steps);
  };
  EXPECT_EQ(end_with({0.9, 0.5, 0.5, 0.6, 0.7, 0.1}, hook(false, 3)), 5)
      << "equal is no progress; best at step 2";
  EXPECT_EQ(end_with({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, hook(true, 1)), 10);
  EXPECT_EQ(end_with({5, 1, 1, 1, 1, 1, 1, 1, 1, 1}, hook(true, 2, 4)), 6) << "step 1 does not count";
  EXPECT_EQ(end_with({1, std::numeric_limits<double>::quiet_NaN()}, hook(false, 4)), 5)
      << "NaN is never better";
}

TEST(EarlyStopping, CountsEvaluationsWithPatience) {
  const auto hook = [](std::int64_t patience) {
    return std::make_unique<StopWithoutProgressHook>("s", "eval/loss", false, 0, 0, patience);
  };
  EXPECT_EQ(end_with({0.9, 0.5, 0.6, 0.4, 0.4, 0.6, 0.1}, hook(2)), 6) << "the best is of step 4";
  EXPECT_EQ(end_with({0.9, 0.5, 0.6, 0.4, 0.4, 0.6, 0.1}, hook(1)), 3);
  EXPECT_EQ(end_with({0.9, 0.5, 0.6, 0.4, 0.4, 0.6, 0.1}, hook(3)), 10);
}

TEST(EarlyStopping, RefusesAMetricThatIsBetterTheOtherWayRound) {
  const StopWithoutProgressHook rises("s", "accuracy", true, 5, 0), falls("s", "loss", false, 5, 0);
  rises.require_direction(Direction::max);
  falls.require_direction(Direction::min);
  rises.require_direction(Direction::none);
  EXPECT_THROW(rises.require_direction(Direction::min), Error);
  EXPECT_THROW(falls.require_direction(Direction::max), Error);
}

TEST(EarlyStopping, MissingMetricIsAnError) {
  EXPECT_THROW(end_with({1}, std::make_unique<StopAtThresholdHook>("s", "eval/accuracy", true, 1, 0)),
               SharedError);
}

TEST(StragglerHook, NamesARankWithSlowOwnWork) {
  const int ranks = test_world().size(), slow = ranks - 1;
  if (ranks < 2) GTEST_SKIP() << "needs two ranks";
  TestRun run;
  run.add<StragglerHook>(ranks, StragglerOptions{.window_steps = 4, .least_seconds = 0.005, .windows = 2});
  run.add<FeedHook>("slow", [slow](std::int64_t, const Microshard&, float*, Labels&) {
    if (test_world().rank() == slow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  run.add<StopAtStepHook>(10);
  ::testing::internal::CaptureStderr();
  run.run();
  const std::string told = ::testing::internal::GetCapturedStderr();
  if (test_world().rank() == 0)
    EXPECT_THAT(told, HasSubstr(fmt::format("rank {} (host ", slow)));
  else
    EXPECT_EQ(told, "");
}

TEST(FinalOps, RunOnceAtTheEnd) {
  TestRun run;
  int calls = 0;
  run.add<StopAtStepHook>(2);
  run.add<FinalOpsHook>("final", [&](HookContext& s) {
    ++calls;
    EXPECT_EQ(s.global_step(), 2);
  });
  run.run();
  EXPECT_EQ(calls, 1);
}

TEST(Feed, TwoFeedsInOneStepAreAnError) {
  TestRun run;
  run.add<FeedHook>("first", Feed([](auto&&...) {}));
  run.add<FeedHook>("second", Feed([](auto&&...) {}));
  try {
    run.run();
    FAIL() << "no error";
  } catch (const SharedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("hooks first and second both feed"));
  }
}

/// Records its calls: "before 2", "after 2".
class Listener : public CheckpointSaverListener {
 public:
  Listener(std::vector<std::string>& calls, std::int64_t stop_at) : calls_(calls), stop_at_(stop_at) {}
  void begin(HookContext&) override { calls_.push_back("begin"); }
  void before_save(HookContext&, std::int64_t step) override {
    calls_.push_back(fmt::format("before {}", step));
  }
  bool after_save(HookContext&, std::int64_t step, const std::string& path) override {
    calls_.push_back(fmt::format("after {}", step));
    EXPECT_EQ(CheckpointFile(path).header().global_step, step)
        << "the file is durable when the listener is called";
    return step == stop_at_;
  }
  void end(HookContext&, std::int64_t step) override { calls_.push_back(fmt::format("end {}", step)); }

 private:
  std::vector<std::string>& calls_;
  std::int64_t stop_at_;
};

TEST(CheckpointSaver, NotifiesListenersAndStopsOnRequest) {
  const lockstep::testing::TemporaryFolder folder;
  const bool chief = test_world().rank() == 0;
  for (const bool background : {false, true}) {
    const auto run_dir = folder.path() / (background ? "b" : "f");
    std::filesystem::create_directory(run_dir);
    Saver saver(chief, run_dir, {.background = background});
    std::vector<std::string> calls;
    TestRun run;
    auto& hook =
        run.add<CheckpointSaverHook>(saver, CheckpointSaverHook::Options{.triggers = {.every_steps = 2}});
    hook.add_listener(std::make_unique<Listener>(calls, 4));
    // In the background a file may be late: each step waits for it, so that the order is deterministic.
    run.add<At>("before_run", 0, -1, [&](HookContext&) { saver.wait(60); });
    run.add<StopAtStepHook>(50);
    run.run();
    if (!chief) {
      EXPECT_TRUE(calls.empty());
      continue;
    }
    ASSERT_GE(calls.size(), 7U);
    EXPECT_EQ(calls.front(), "begin");
    EXPECT_EQ(calls[1], "before 2");
    EXPECT_EQ(calls[2], "after 2");
    EXPECT_EQ(calls[3], "before 4");
    EXPECT_EQ(calls[4], "after 4");
    EXPECT_LE(run.session.global_step(), 7) << "the stop was requested after step 4";
    EXPECT_EQ(calls.back(), fmt::format("end {}", run.session.global_step()));
    EXPECT_EQ(calls[calls.size() - 2], fmt::format("after {}", run.session.global_step()));
  }
}

/// A run of 16 steps whose metric is smallest at step 7, on a disk that takes `write_seconds` for a
/// checkpoint. The checkpoints that stay, with what is known of them.
std::vector<KeptCheckpoint> checkpoints_of(const std::string& run_dir, int keep_best,
                                           std::optional<std::int64_t> every_steps, double write_seconds) {
  std::filesystem::create_directory(run_dir);
  const bool chief = test_world().rank() == 0;
  Saver saver(chief, run_dir, {.retention = {.keep = 1, .keep_best = keep_best}});
  saver.set_before_write([&] { std::this_thread::sleep_for(std::chrono::duration<double>(write_seconds)); });
  TestRun run;
  run.add<At>("after_run", -1, -1, [](HookContext& context) {
    const auto step = static_cast<double>(context.global_step());
    context.eval_metrics().note("eval/distance", context.global_step(), std::abs(step - 7) + step / 100);
  });
  run.add<CheckpointSaverHook>(saver, CheckpointSaverHook::Options{.triggers = {.every_steps = every_steps},
                                                                   .best_metric = "eval/distance"});
  run.add<StopAtStepHook>(16);
  run.run();
  return chief ? CheckpointStore(run_dir, {.keep = 1, .keep_best = keep_best}).list()
               : std::vector<KeptCheckpoint>();
}

TEST(CheckpointSaver, KeepsTheBestHoweverSlowTheDisk) {
  const lockstep::testing::TemporaryFolder folder;
  // Steps 1 to 7 are each the best so far. With a disk of 30 ms per file all are due while one is written.
  for (const double write_seconds : {0.0, 0.03}) {
    const auto kept =
        checkpoints_of(folder.path() / fmt::format("best-{}", write_seconds), 1, std::nullopt, write_seconds);
    if (test_world().rank() != 0) continue;
    ASSERT_EQ(kept.size(), 2U);
    EXPECT_EQ(kept[0].step, 7);
    EXPECT_TRUE(kept[0].best);
    EXPECT_DOUBLE_EQ(kept[0].metric.value_or(-1), 0.07);
    EXPECT_EQ(kept[1].step, 16);
  }
}

TEST(CheckpointSaver, SavesAtTheStepsThatAreDueHoweverSlowTheDisk) {
  const lockstep::testing::TemporaryFolder folder;
  for (const double write_seconds : {0.0, 0.03}) {
    const auto kept =
        checkpoints_of(folder.path() / fmt::format("due-{}", write_seconds), 3, 2, write_seconds);
    if (test_world().rank() != 0) continue;
    std::vector<std::int64_t> steps;
    for (const KeptCheckpoint& one : kept) steps.push_back(one.step);
    // Steps 2, 4, ... by count, and each that is the best so far.
    EXPECT_THAT(steps, ::testing::ElementsAre(6, 7, 8, 16));
  }
}

}  // namespace
}  // namespace lockstep
