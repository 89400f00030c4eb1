// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The session and its hooks on any number of ranks: the order of calls, requests of any rank that all ranks
// follow after the same step, errors in each method on the chief and on another rank, recovery, and each
// built-in hook by its effect.
#include "driver/monitored_session.h"

#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <thread>

#include "core/timed_service.h"
#include "driver/hooks/early_stopping_hook.h"
#include "driver/hooks/function_hooks.h"
#include "driver/hooks/nan_guard_hook.h"
#include "driver/hooks/stop_hooks.h"
#include "driver/hooks/straggler_hook.h"
#include "driver/launch.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNet = "[flatten, dense: {units: 6}, batch_norm, relu, dense: {units: 3}]";

/// A run with a session around it; variables go back to their initial values in a recovery.
struct TestRun {
  explicit TestRun(int max_recoveries = 0, const char* net = kNet,
                   std::function<void(VariableStore&)> init_fn = {}, std::int64_t restored_step = -1)
      : tiny(test_world(), {.layers = net, .optimizer = "momentum: {learning_rate: 0.05}", .shards = 5}),
        reports(test_world().rank() == 0, "", {.events = false, .metrics = false}),
        session({.control = tiny.control(),
                 .trainer = tiny.trainer(),
                 .variables = tiny.variables(),
                 .optimizer = tiny.optimizer(),
                 .reports = reports,
                 .shards = 5,
                 .seed = 4},
                {.run_dir = "",
                 .max_recoveries = max_recoveries,
                 .recovery_wait_seconds = 0,
                 .init_fn = std::move(init_fn)},
                [this, restored_step](auto& s) {
                  tiny.variables().initialize(4);
                  tiny.optimizer().reset_slots();
                  s.trainer().set_position(0, {});
                  s.set_restored(restored_step);
                }) {}
  template <typename H, typename... Args>
  H& add(Args&&... args) {
    auto hook = std::make_unique<H>(std::forward<Args>(args)...);
    H& kept = *hook;
    session.add(std::move(hook));
    return kept;
  }
  void run() {
    session.start();
    session.run();
  }

  TinyRun tiny;
  RunReports reports;
  MonitoredSession session;
};

/// Writes down its calls: "name.method step".
class Recorder : public Hook {
 public:
  Recorder(std::string name, std::vector<std::string>& calls, HookScope scope = HookScope::all_ranks)
      : Hook(std::move(name), scope), calls_(calls) {}
  void begin(MonitoredSession& s) override { note("begin", s.global_step()); }
  void after_create_session(MonitoredSession& s) override { note("create", s.global_step()); }
  void before_run(MonitoredSession& s) override { note("before", s.global_step()); }
  Verdict before_update(MonitoredSession& s, const StepResult& r) override {
    EXPECT_EQ(r.step, s.global_step() + 1);
    note("update", s.global_step());
    return Verdict::update;
  }
  void after_run(MonitoredSession& s, const StepResult& r) override {
    EXPECT_EQ(r.step, s.global_step());
    EXPECT_GT(r.loss, 0);
    note("after", s.global_step());
  }
  void end(MonitoredSession& s) override { note("end", s.global_step()); }

 private:
  void note(const char* method, std::int64_t step) {
    calls_.push_back(fmt::format("{}.{} {}", name(), method, step));
  }
  std::vector<std::string>& calls_;
};

TEST(Hooks, AreCalledInTheirOrderInEachMethodAndChiefOnlyOnesOnTheChief) {
  std::vector<std::string> calls;
  TestRun run;
  run.add<Recorder>("a", calls);
  run.add<Recorder>("b", calls, HookScope::chief_only);
  run.add<StopAtStepHook>(2);
  run.add<Recorder>("c", calls);
  run.run();
  std::vector<std::string> expected;
  const auto all = [&](const char* call) {
    for (const char* hook : {"a", "b", "c"})
      if (*hook != 'b' || test_world().rank() == 0) expected.push_back(fmt::format("{}.{}", hook, call));
  };
  for (const char* call :
       {"begin 0", "create 0", "before 0", "update 0", "after 1", "before 1", "update 1", "after 2", "end 2"})
    all(call);
  EXPECT_EQ(calls, expected);
}

TEST(Hooks, TwoWithOneNameAreRefused) {
  std::vector<std::string> calls;
  TestRun run;
  run.add<Recorder>("twin", calls);
  EXPECT_THROW(run.add<Recorder>("twin", calls), Error);
}

/// Calls `function` in one method, on one rank (-1: all), at one step.
class At : public Hook {
 public:
  using Function = std::function<void(MonitoredSession&)>;
  At(std::string method, int rank, std::int64_t step, Function function)
      : Hook("at_" + method),
        method_(std::move(method)),
        rank_(rank),
        step_(step),
        function_(std::move(function)) {}
  void begin(MonitoredSession& s) override { call("begin", s); }
  void after_create_session(MonitoredSession& s) override { call("after_create_session", s); }
  void before_run(MonitoredSession& s) override { call("before_run", s); }
  Verdict before_update(MonitoredSession& s, const StepResult&) override {
    call("before_update", s);
    return Verdict::update;
  }
  void after_run(MonitoredSession& s, const StepResult&) override { call("after_run", s); }
  void end(MonitoredSession& s) override { call("end", s); }

 private:
  void call(const char* method, MonitoredSession& s) {
    if (method_ == method && (rank_ < 0 || rank_ == s.control().rank()) &&
        (step_ < 0 || step_ == s.global_step()))
      function_(s);
  }
  std::string method_;
  int rank_;
  std::int64_t step_;
  Function function_;
};

TEST(Hooks, ARequestOfOneRankStopsAllAfterTheSameStep) {
  const int last = test_world().size() - 1;
  const struct {
    const char* method;
    std::int64_t at, end;
  } cases[] = {{"before_run", 3, 4}, {"after_run", 3, 4}};
  for (const auto& c : cases) {
    TestRun run;
    run.add<At>(c.method, last, c.at, [](MonitoredSession& s) { s.request_stop("a test asks for it"); });
    run.run();
    EXPECT_EQ(run.session.global_step(), c.end) << c.method;
  }
}

TEST(Hooks, StopNowOnAllRanksEndsWithThatStep) {
  TestRun run;
  run.add<At>("after_run", -1, 3, [](MonitoredSession& s) { s.stop_now("a test asks for it"); });
  run.run();
  EXPECT_EQ(run.session.global_step(), 3);
}

TEST(Hooks, AnErrorInAnyMethodOnAnyRankEndsAllRanksWithTheHooksName) {
  const int last = test_world().size() - 1;
  for (const int rank : {0, last})
    for (const char* method :
         {"begin", "after_create_session", "before_run", "before_update", "after_run", "end"}) {
      std::vector<std::string> calls;
      TestRun run;
      run.add<Recorder>("other", calls);
      run.add<At>(method, rank, std::string_view(method) == "end" ? 3 : -1, [](MonitoredSession&) {
        throw Error(ErrorKind::data, "the sensor is broken", "sensor 7", "Mend it.");
      });
      run.add<StopAtStepHook>(3);
      const std::string what = fmt::format("{} on rank {}", method, rank);
      try {
        run.run();
        ADD_FAILURE() << "no error: " << what;
      } catch (const SharedError& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << what;
        EXPECT_THAT(error.what(), HasSubstr(fmt::format("hook at_{0}, {0}: the sensor is broken", method)))
            << what;
        EXPECT_THAT(error.what(), HasSubstr("sensor 7")) << what;
        if (test_world().size() > 1) {
          EXPECT_THAT(error.what(), HasSubstr(fmt::format("on rank {}", rank))) << what;
        }
      }
      if (std::string_view(method) != "end") {
        EXPECT_THAT(calls, testing::Not(testing::Contains(testing::StartsWith("other.end")))) << what;
      }
    }
}

TEST(Hooks, AnErrorInTheLastStepIsNotLost) {
  TestRun run;
  run.add<StopAtStepHook>(2);
  run.add<At>("after_run", test_world().size() - 1, 2,
              [](MonitoredSession&) { throw std::runtime_error("too late?"); });
  EXPECT_THROW(run.run(), SharedError);
}

TEST(Hooks, TheOthersOfAStepStillRunAfterAnError) {
  std::vector<std::string> calls;
  TestRun run;
  run.add<At>("after_run", -1, 2, [](MonitoredSession&) { throw std::runtime_error("first"); });
  run.add<Recorder>("r", calls);
  EXPECT_THROW(run.run(), SharedError);
  EXPECT_THAT(calls, testing::Contains("r.after 2"));
  EXPECT_THAT(calls, testing::Not(testing::Contains("r.after 3")));
}

TEST(Hooks, ATransientErrorGoesBackWithoutCallingBeginAgainAndEndsWithTheSameBits) {
  TestRun whole;
  whole.add<StopAtStepHook>(6);
  whole.run();

  std::vector<std::string> calls;
  TestRun run(2);
  run.add<Recorder>("r", calls);
  int failures = 0;
  run.add<At>("after_run", test_world().size() - 1, 4, [&](MonitoredSession&) {
    if (++failures <= 2) throw TransientError(ErrorKind::data, "the file server does not answer");
  });
  run.add<StopAtStepHook>(6);
  run.run();
  EXPECT_EQ(run.session.recoveries(), 2);
  EXPECT_EQ(std::ranges::count(calls, "r.begin 0"), 1);
  EXPECT_EQ(std::ranges::count(calls, "r.create 0"), 3);
  EXPECT_EQ(run.tiny.variables().hash(), whole.tiny.variables().hash());

  TestRun hopeless(2);
  hopeless.add<At>("after_run", 0, 4, [](MonitoredSession&) {
    throw TransientError(ErrorKind::data, "the file server does not answer");
  });
  EXPECT_THROW(hopeless.run(), SharedError);
  EXPECT_EQ(hopeless.session.recoveries(), 3) << "the third is one too many";
}

class Words : public Hook {
 public:
  Words() : Hook("words") {}
  void begin(MonitoredSession& s) override { words_ = s.declare_words(2); }
  void before_run(MonitoredSession& s) override {
    s.words(words_)[0] = 100 * s.control().rank() + static_cast<double>(s.global_step());
    s.words(words_)[1] = -1;
  }
  void after_run(MonitoredSession& s, const StepResult& result) override {
    for (int rank = 0; rank < s.control().size(); ++rank)
      EXPECT_THAT(s.words_of(words_, rank),
                  ElementsAre(100 * rank + static_cast<double>(result.step) - 1, -1));
    ++checked_;
  }
  int checked_ = 0;

 private:
  MonitoredSession::Words words_;
};

TEST(Hooks, WordsOfEachRankTravelWithTheStep) {
  TestRun run, plain;
  plain.add<StopAtStepHook>(5);
  plain.run();
  Words& words = run.add<Words>();
  run.add<StopAtStepHook>(5);
  run.run();
  EXPECT_EQ(words.checked_, 5);
  EXPECT_EQ(run.tiny.variables().hash(), plain.tiny.variables().hash());
}

TEST(Hooks, ASaveRequestOfOneRankReachesAll) {
  TestRun run;
  std::vector<std::int64_t> taken;
  run.add<At>("before_run", test_world().size() - 1, 2, [](MonitoredSession& s) { s.request_save(); });
  run.add<At>("after_run", -1, -1, [&](MonitoredSession& s) {
    if (s.take_save_request()) taken.push_back(s.global_step());
  });
  run.add<StopAtStepHook>(5);
  run.run();
  EXPECT_THAT(taken, ElementsAre(3));
}

TEST(StopHooks, AfterStepsCountsFromTheFirstCreationAlsoAfterARecovery) {
  TestRun run(1);
  int failures = 0;
  run.add<At>("after_run", 0, 2, [&](MonitoredSession&) {
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

TEST(StopHooks, AfterSecondsByTheChiefsClock) {
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

TEST(NanGuard, AnErrorBeforeTheVariablesMove) {
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

TEST(NanGuard, StopEndsInOrderAndSkipGoesOnWithFiniteVariables) {
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

/// Twelve steps with a loss that jumps at steps 9 and 10; where it ends, and whether the variables moved
/// then.
std::int64_t end_with_spikes(double factor, GuardAction action, bool& moved) {
  TestRun run(0, "[flatten, dense: {units: 3}]");
  run.add<FeedHook>("spike", [](std::int64_t step, const Microshard& m, float* features, Labels&) {
    for (std::int64_t i = 0; step >= 8 && step < 10 && i < m.n * 72; ++i)
      features[i] = 1e4F * static_cast<float>(i % 7 - 3);
  });
  run.add<LossSpikeHook>(factor, 5, action);
  std::uint64_t before = 0;
  run.add<At>("before_run", -1, 8, [&](MonitoredSession& s) { before = s.variables().hash(); });
  run.add<At>("after_run", -1, 9, [&](MonitoredSession& s) { moved = s.variables().hash() != before; });
  run.add<StopAtStepHook>(12);
  run.run();
  return run.session.global_step();
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

/// Notes a made-up metric after every step.
class Metric : public Hook {
 public:
  explicit Metric(std::vector<double> values) : Hook("metric"), values_(std::move(values)) {}
  void after_run(MonitoredSession& s, const StepResult& r) override {
    s.metrics().note("eval/loss", r.step, values_[static_cast<std::size_t>(r.step - 1) % values_.size()]);
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

TEST(EarlyStopping, ByThreshold) {
  const auto hook = [](bool higher, std::int64_t min_steps) {
    return std::make_unique<StopAtThresholdHook>("s", "eval/loss", higher, 0.5, min_steps);
  };
  EXPECT_EQ(end_with({0.1, 0.5, 0.6, 0.7}, hook(true, 0)), 3) << "0.5 is not above 0.5";
  EXPECT_EQ(end_with({0.1, 0.5, 0.6, 0.7}, hook(true, 4)), 4);
  EXPECT_EQ(end_with({0.9, 0.5, 0.4, 0.7}, hook(false, 0)), 3);
  EXPECT_EQ(end_with({0.9}, hook(false, 0)), 10);
}

TEST(EarlyStopping, WithoutProgress) {
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

TEST(EarlyStopping, AMetricThatNobodyNotesIsAnError) {
  EXPECT_THROW(end_with({1}, std::make_unique<StopAtThresholdHook>("s", "eval/accuracy", true, 1, 0)),
               SharedError);
}

TEST(InitFn, RunsOnlyWhenNothingWasRestored) {
  const auto pretrained = [](VariableStore& variables) {
    std::ranges::fill(variables.trainable_values(), 0.25F);
  };
  for (const std::int64_t restored : {-1, 0}) {
    TestRun run(0, kNet, pretrained, restored);
    run.session.start();
    EXPECT_EQ(run.tiny.variables().trainable_values()[0] == 0.25F, restored < 0);
  }
}

TEST(ReadyCheck, NamesTheVariablesWithoutValues) {
  TestRun run;
  // As if the checkpoint that was restored had not held them.
  const_cast<Variable&>(run.tiny.variables()[VariableId{0}]).initializer = nullptr;
  try {
    run.run();
    FAIL() << "no error";
  } catch (const SharedError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_THAT(error.what(), HasSubstr("no values: " + run.tiny.variables()[VariableId{0}].name));
  }
  TestRun given(0, kNet, [](VariableStore& variables) { variables.mark_set(VariableId{0}); });
  const_cast<Variable&>(given.tiny.variables()[VariableId{0}]).initializer = nullptr;
  given.add<StopAtStepHook>(1);
  given.run();
}

TEST(Services, RunBesideTheLoopAndEndWithIt) {
  std::atomic<int> runs{0};
  TestRun run;
  run.add<At>("after_create_session", 0, -1, [&](MonitoredSession& s) {
    loop(s.coordinator(), 0.001, [&] { ++runs; }, {.name = "counter"});
  });
  run.add<At>("after_run", 0, -1, [&](MonitoredSession& s) {
    if (runs > 3) s.request_stop("enough");
  });
  run.run();
  EXPECT_EQ(runs > 3, test_world().rank() == 0);
  EXPECT_TRUE(run.session.coordinator().running_threads().empty());
}

TEST(Services, AnErrorInOneOnOneRankEndsAllRanksWithItsName) {
  const int last = test_world().size() - 1;
  TestRun run;
  run.add<At>("after_create_session", last, -1, [](MonitoredSession& s) {
    loop(s.coordinator(), 0.001, [] { throw Error(ErrorKind::data, "the queue is gone"); },
         {.name = "reader"});
  });
  run.add<StopAtStepHook>(1'000'000);
  try {
    run.run();
    FAIL() << "no error";
  } catch (const SharedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("reader"));
    EXPECT_THAT(error.what(), HasSubstr("the queue is gone"));
  }
}

TEST(Services, ATransientErrorInOneStartsItAgain) {
  std::atomic<int> starts{0};
  TestRun run(1);
  run.add<At>("after_create_session", -1, -1, [&](MonitoredSession& s) {
    ++starts;
    if (s.control().rank() != 0 || s.recoveries() > 0) return;
    loop(s.coordinator(), 0.001, [] { throw TransientError(ErrorKind::data, "no answer"); },
         {.name = "reader"});
  });
  run.add<At>("after_run", -1, -1, [](MonitoredSession& s) {
    if (s.recoveries() > 0 && s.global_step() >= 3) s.stop_now();
  });
  run.run();
  EXPECT_EQ(run.session.recoveries(), 1);
  EXPECT_EQ(starts, 2);
}

TEST(StragglerHook, NamesARankThatIsSlowInItsOwnWork) {
  const int ranks = test_world().size(), slow = ranks - 1;
  if (ranks < 2) GTEST_SKIP() << "one rank holds nobody up";
  TestRun run;
  run.add<StragglerHook>(ranks, StragglerOptions{.window_steps = 4, .least_seconds = 0.005, .windows = 2});
  run.add<FeedHook>("slow", [slow](std::int64_t, const Microshard&, float*, Labels&) {
    if (test_world().rank() == slow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  run.add<StopAtStepHook>(10);
  testing::internal::CaptureStderr();
  run.run();
  const std::string told = testing::internal::GetCapturedStderr();
  if (test_world().rank() == 0)
    EXPECT_THAT(told, HasSubstr(fmt::format("rank {} (host ", slow)));
  else
    EXPECT_EQ(told, "");
}

TEST(FinalOps, RunOnceAtTheEnd) {
  TestRun run;
  int calls = 0;
  run.add<StopAtStepHook>(2);
  run.add<FinalOpsHook>("final", [&](MonitoredSession& s) {
    ++calls;
    EXPECT_EQ(s.global_step(), 2);
  });
  run.run();
  EXPECT_EQ(calls, 1);
}

TEST(Feed, TwoFeedsOfOneStepAreAnErrorThatNamesBoth) {
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

}  // namespace
}  // namespace lockstep
