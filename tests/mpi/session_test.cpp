// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The session on any number of ranks: the order of its hooks' calls, requests of one rank that all ranks
// follow after the same step, deferred calls, values of ranks, initial values.
#include "session/monitored_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/launch.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "session/hooks/stop_hooks.h"
#include "support/hook_run.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Hooks, RunInOrderAndChiefOnlyOnesOnTheChief) {
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

TEST(Hooks, RejectsDuplicateNames) {
  std::vector<std::string> calls;
  TestRun run;
  run.add<Recorder>("twin", calls);
  EXPECT_THROW(run.add<Recorder>("twin", calls), Error);
}

TEST(Hooks, StopRequestOfOneRankStopsAll) {
  const int last = test_world().size() - 1;
  const struct {
    const char* method;
    std::int64_t at, end;
  } cases[] = {{"before_run", 3, 4}, {"after_run", 3, 4}};
  for (const auto& c : cases) {
    TestRun run;
    run.add<At>(c.method, last, c.at, [](HookContext& s) { s.request_stop("a test asks for it"); });
    run.run();
    EXPECT_EQ(run.session.global_step(), c.end) << c.method;
  }
}

/// A request from step `at` on, on one rank.
InterruptionSources::Source request_from(HookContext& context, int rank, std::int64_t at,
                                         InterruptionRequest request) {
  return [&context, rank, at, request]() -> InterruptionRequest {
    const bool due = context.control().rank() == rank && context.global_step() >= at;
    return due ? request : InterruptionRequest{};
  };
}

TEST(Hooks, MostUrgentInterruptionStopsAllRanks) {
  const int last = test_world().size() - 1;
  TestRun run;
  run.add<StopAtStepHook>(9);
  run.session.context().interruptions().add(
      request_from(run.session.context(), 0, 3, {Interruption::requeue, 10}));
  run.session.context().interruptions().add(
      request_from(run.session.context(), last, 3, {Interruption::user, 2}));
  run.run();
  EXPECT_EQ(run.session.global_step(), 4);
  EXPECT_EQ(run.session.interruption().kind, Interruption::user);
  EXPECT_EQ(run.session.interruption().reason, 2);
}

TEST(Hooks, InterruptionBeforeTheFirstStepSkipsIt) {
  TestRun run;
  run.session.context().interruptions().add(
      request_from(run.session.context(), test_world().size() - 1, 0, {Interruption::requeue, 15}));
  run.run();
  EXPECT_EQ(run.session.global_step(), 0);
  EXPECT_EQ(run.session.interruption().kind, Interruption::requeue);
}

TEST(Hooks, InterruptionInTheLastStepHasNoEffect) {
  TestRun run;
  run.add<StopAtStepHook>(4);
  run.session.context().interruptions().add(
      request_from(run.session.context(), 0, 3, {Interruption::requeue, 10}));
  run.run();
  EXPECT_EQ(run.session.global_step(), 4);
  EXPECT_FALSE(run.session.interruption().any());
}

TEST(Hooks, DeferredWorkResumesBeforeTheNextStep) {
  std::vector<std::string> calls;
  std::vector<double> kept;
  {
    TestRun run;
    run.add<Recorder>("a", calls);
    Hook* giving_up = nullptr;
    giving_up = &run.add<At>("after_run", -1, 2, [&](HookContext& s) {
      s.defer(*giving_up, {Interruption::requeue, 10});
    });
    run.add<Recorder>("b", calls);
    run.run();
    EXPECT_EQ(calls.back(), "b.end 2");
    EXPECT_THAT(calls, testing::Not(testing::Contains("b.after 2")));
    EXPECT_EQ(run.session.context().state().size(), 1U);
    const Tensor deferred = run.session.context().state().back().tensor;
    kept.assign(deferred.data<double>(), deferred.data<double>() + deferred.num_elements());
  }
  calls.clear();
  TestRun run(0, kHookNet, 2);
  run.on_restore = [&](HookContext& s) {
    std::ranges::copy(kept, s.state(true).back().tensor.data<double>());
    s.trainer().set_position(2, {});
  };
  run.add<Recorder>("a", calls);
  run.add<At>("after_run", -1, 2, [&](HookContext&) { calls.emplace_back("deferred"); });
  run.add<Recorder>("b", calls);
  run.add<StopAtStepHook>(3);
  run.run();
  const std::vector<std::string> first(calls.begin() + 4, calls.begin() + 7);
  EXPECT_THAT(first, ElementsAre("deferred", "b.after 2", "a.before 2"));
  EXPECT_TRUE(run.session.context().ran_deferred());
  EXPECT_TRUE(run.session.context().state().empty()) << "it must not run again";
}

TEST(Hooks, DeferredEndKnowsTheLastStep) {
  std::vector<double> kept;
  StepResult before, after;
  {
    TestRun run;
    run.add<StopAtStepHook>(4);
    Hook* interrupted = nullptr;
    interrupted = &run.add<At>("end", -1, 4, [&](HookContext& s) {
      before = s.last_step();
      s.defer(*interrupted, {Interruption::requeue, 10});
    });
    run.run();
    const Tensor deferred = run.session.context().state().back().tensor;
    kept.assign(deferred.data<double>(), deferred.data<double>() + deferred.num_elements());
  }
  ASSERT_TRUE(before.epoch_ended) << "the cursor is in the next epoch";
  TestRun run(0, kHookNet, 4);
  run.on_restore = [&](HookContext& s) {
    std::ranges::copy(kept, s.state(true).back().tensor.data<double>());
    s.trainer().set_position(4, before.cursor);
  };
  run.add<At>("end", -1, 4, [&](HookContext& s) { after = s.last_step(); });
  run.run();
  EXPECT_EQ(run.session.global_step(), 4) << "no step follows";
  EXPECT_EQ(after.step, 4);
  EXPECT_EQ(after.epoch, before.epoch);
  EXPECT_EQ(after.loss, before.loss);
}

TEST(Hooks, StopNowEndsWithThatStep) {
  TestRun run;
  run.add<At>("after_run", -1, 3, [](HookContext& s) { s.stop_now("a test asks for it"); });
  run.run();
  EXPECT_EQ(run.session.global_step(), 3);
}

class SendingHook : public Hook {
 public:
  SendingHook() : Hook("sending") {}
  void begin(HookContext& s) override { slice_ = s.rank_values().declare(2); }
  void before_run(HookContext& s) override {
    s.rank_values().mine(slice_)[0] = 100 * s.control().rank() + static_cast<double>(s.global_step());
    s.rank_values().mine(slice_)[1] = -1;
  }
  void after_run(HookContext& s, const StepResult& result) override {
    for (int rank = 0; rank < s.control().size(); ++rank)
      EXPECT_THAT(s.rank_values().of_rank(slice_, rank),
                  ElementsAre(100 * rank + static_cast<double>(result.step) - 1, -1));
    ++checked_;
  }
  int checked_ = 0;

 private:
  RankValues::Slice slice_;
};

TEST(Hooks, RankValuesAreExchangedWithTheStep) {
  TestRun run, plain;
  plain.add<StopAtStepHook>(5);
  plain.run();
  SendingHook& hook = run.add<SendingHook>();
  run.add<StopAtStepHook>(5);
  run.run();
  EXPECT_EQ(hook.checked_, 5);
  EXPECT_EQ(run.tiny.variables().hash(), plain.tiny.variables().hash());
}

TEST(Hooks, RankValuesAreDeclaredInBeginOnly) {
  TestRun run;
  run.add<At>("after_create_session", -1, -1, [](HookContext& s) { s.rank_values().declare(1); });
  run.add<StopAtStepHook>(1);
  EXPECT_THROW(run.run(), SharedError);
}

TEST(Hooks, SaveRequestOfOneRankReachesAll) {
  TestRun run;
  std::vector<std::int64_t> taken;
  run.add<At>("before_run", test_world().size() - 1, 2, [](HookContext& s) { s.request_save(); });
  run.add<At>("after_run", -1, -1, [&](HookContext& s) {
    if (s.save_request().take()) taken.push_back(s.global_step());
  });
  run.add<StopAtStepHook>(5);
  run.run();
  EXPECT_THAT(taken, ElementsAre(3));
}

}  // namespace
}  // namespace lockstep
