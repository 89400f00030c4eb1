// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors in a session on any number of ranks: in each method of a hook, on the chief and on another rank; in
// a service; recovery from transient errors.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>

#include "api/launch.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "core/timed_service.h"
#include "session/hooks/stop_hooks.h"
#include "session/monitored_session.h"
#include "support/hook_run.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

TEST(Hooks, ErrorInAnyMethodEndsAllAndNamesTheHook) {
  const int last = test_world().size() - 1;
  for (const int rank : {0, last})
    for (const char* method :
         {"begin", "after_create_session", "before_run", "before_update", "after_run", "end"}) {
      std::vector<std::string> calls;
      TestRun run;
      run.add<Recorder>("other", calls);
      run.add<At>(method, rank, std::string_view(method) == "end" ? 3 : -1, [](HookContext&) {
        throw Error(ErrorKind::data, "the sensor is broken", "sensor 7", "Repair it.");
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

TEST(Hooks, ErrorInTheLastStepIsReported) {
  TestRun run;
  run.add<StopAtStepHook>(2);
  run.add<At>("after_run", test_world().size() - 1, 2,
              [](HookContext&) { throw std::runtime_error("too late?"); });
  EXPECT_THROW(run.run(), SharedError);
}

TEST(Hooks, OtherHooksOfTheStepRunAfterAnError) {
  std::vector<std::string> calls;
  TestRun run;
  run.add<At>("after_run", -1, 2, [](HookContext&) { throw std::runtime_error("first"); });
  run.add<Recorder>("r", calls);
  EXPECT_THROW(run.run(), SharedError);
  EXPECT_THAT(calls, testing::Contains("r.after 2"));
  EXPECT_THAT(calls, testing::Not(testing::Contains("r.after 3")));
}

TEST(Hooks, TransientErrorRecoversWithTheSameBits) {
  TestRun whole;
  whole.add<StopAtStepHook>(6);
  whole.run();

  std::vector<std::string> calls;
  TestRun run(2);
  run.add<Recorder>("r", calls);
  int failures = 0;
  run.add<At>("after_run", test_world().size() - 1, 4, [&](HookContext&) {
    if (++failures <= 2) throw TransientError(ErrorKind::data, "the file server does not answer");
  });
  run.add<StopAtStepHook>(6);
  run.run();
  EXPECT_EQ(run.session.context().recoveries(), 2);
  EXPECT_EQ(std::ranges::count(calls, "r.begin 0"), 1);
  EXPECT_EQ(std::ranges::count(calls, "r.create 0"), 3);
  EXPECT_EQ(run.tiny.variables().hash(), whole.tiny.variables().hash());

  TestRun hopeless(2);
  hopeless.add<At>("after_run", 0, 4, [](HookContext&) {
    throw TransientError(ErrorKind::data, "the file server does not answer");
  });
  EXPECT_THROW(hopeless.run(), SharedError);
  EXPECT_EQ(hopeless.session.context().recoveries(), 3) << "the third recovery exceeds the limit";
}

TEST(Services, RunDuringTheLoopAndEndWithIt) {
  std::atomic<int> runs{0};
  TestRun run;
  run.add<At>("after_create_session", 0, -1,
              [&](HookContext& s) { loop(s.coordinator(), 0.001, [&] { ++runs; }, {.name = "counter"}); });
  run.add<At>("after_run", 0, -1, [&](HookContext& s) {
    if (runs > 3) s.request_stop("enough");
  });
  run.run();
  EXPECT_EQ(runs > 3, test_world().rank() == 0);
  EXPECT_TRUE(run.session.context().coordinator().running_threads().empty());
}

TEST(Services, ErrorOnOneRankEndsAllAndNamesTheService) {
  const int last = test_world().size() - 1;
  TestRun run;
  run.add<At>("after_create_session", last, -1, [](HookContext& s) {
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

TEST(Services, TransientErrorRestartsTheService) {
  std::atomic<int> starts{0};
  TestRun run(1);
  run.add<At>("after_create_session", -1, -1, [&](HookContext& s) {
    ++starts;
    if (s.control().rank() != 0 || s.recoveries() > 0) return;
    loop(s.coordinator(), 0.001, [] { throw TransientError(ErrorKind::data, "no answer"); },
         {.name = "reader"});
  });
  run.add<At>("after_run", -1, -1, [](HookContext& s) {
    if (s.recoveries() > 0 && s.global_step() >= 3) s.stop_now();
  });
  run.run();
  EXPECT_EQ(run.session.context().recoveries(), 1);
  EXPECT_EQ(starts, 2);
}

}  // namespace
}  // namespace lockstep
