// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Loops of a program under a Supervisor, on any number of ranks: the bits of a MonitoredSession, checkpoints
// by time and on request, services, ends of the body, errors.
#include "api/supervisor.h"

#include <gmock/gmock.h>

#include <atomic>

#include "io/checkpoint_store.h"
#include "session/hooks/stop_hooks.h"
#include "session/transient_error.h"
#include "support/session_run.h"
#include "train/gradients.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Supervisor::Options until(const std::string& run_dir, std::optional<std::int64_t> last_step) {
  return {.session = {.run_dir = run_dir}, .last_step = last_step, .save_summaries_seconds = 0};
}

std::string digest_of(const std::string& run_dir) {
  test_world().barrier("the checkpoint is there");
  const FoundCheckpoint found = find_checkpoint(test_world(), run_dir, "");
  EXPECT_TRUE(found.exists());
  std::string digest;
  if (test_world().rank() == 0) digest = CheckpointFile(found.path).header().digest;
  return digest;
}

std::vector<std::int64_t> saved_steps(const std::string& run_dir) {
  std::vector<std::int64_t> steps;
  for (const KeptCheckpoint& kept : CheckpointStore(run_dir, 0).list()) steps.push_back(kept.step);
  return steps;
}

/// The hash of a MonitoredSession's variables after `steps` steps.
std::uint64_t monitored(std::int64_t steps) {
  TestRun run;
  run.add<StopAtStepHook>(steps);
  run.run();
  return run.tiny.variables().hash();
}

TEST(Supervisor, AnyLoopHasTheBitsOfAMonitoredSession) {
  const std::uint64_t expected = monitored(9);
  std::vector<std::string> digests;
  for (const std::string way : {"minimize", "halves", "several", "own end", "asked twice"}) {
    const std::string run_dir = fresh_run_dir("bits");
    OwnRun run;
    Trainer& trainer = run.tiny.trainer();
    Supervisor supervisor(run.supervised(),
                          until(run_dir, way == "own end" ? std::nullopt : std::optional(9)));
    EXPECT_EQ(supervisor.managed_session([&] {
      while (!supervisor.should_stop()) {
        if (way == "asked twice") {
          EXPECT_FALSE(supervisor.should_stop());
        }
        if (way == "own end" && trainer.global_step() == 9) return;
        if (way == "halves")
          trainer.apply_gradients(trainer.compute_gradients());
        else
          trainer.minimize();
        if (way == "several")
          for (int i = 0; i < 2; ++i) trainer.minimize();
      }
    }),
              0);
    EXPECT_EQ(run.tiny.variables().hash(), expected) << way;
    EXPECT_EQ(supervisor.global_step(), 9) << way;
    digests.push_back(digest_of(run_dir));
  }
  EXPECT_EQ(std::ranges::count(digests, digests.front()), static_cast<std::ptrdiff_t>(digests.size()));
}

TEST(Supervisor, ContinuesWithTheSameBits) {
  const std::string run_dir = fresh_run_dir("continue");
  train_and_save(run_dir, 4);
  EXPECT_EQ(train_and_save(run_dir, 9), monitored(9));
  // There already: no step.
  OwnRun run;
  Supervisor supervisor(run.supervised(), until(run_dir, 9));
  supervisor.managed_session([&] {
    EXPECT_EQ(supervisor.restored_step(), 9);
    EXPECT_TRUE(supervisor.should_stop());
  });
  EXPECT_EQ(run.tiny.variables().hash(), monitored(9));
}

TEST(Supervisor, AnotherRankMayRequestStopsAndCheckpoints) {
  const std::string run_dir = fresh_run_dir("requests");
  const int last = test_world().size() - 1;
  OwnRun run;
  Supervisor supervisor(run.supervised(), until(run_dir, {}));
  supervisor.managed_session([&] {
    while (!supervisor.should_stop()) {
      if (test_world().rank() == last && supervisor.global_step() == 2) supervisor.request_save();
      if (test_world().rank() == last && supervisor.global_step() == 6)
        supervisor.request_stop("a test asks");
      run.tiny.trainer().minimize();
    }
  });
  EXPECT_EQ(supervisor.global_step(), 8) << "the request travels with the next exchange";
  if (test_world().rank() == 0) {
    EXPECT_THAT(saved_steps(run_dir), testing::ElementsAre(4, 8));
  }
}

TEST(Supervisor, SavesAndRecordsByTheClockOfTheChief) {
  const std::string run_dir = fresh_run_dir("clock");
  OwnRun run;
  Supervisor::Options options = until(run_dir, {});
  options.save_model_seconds = 1e-6;
  options.save_summaries_seconds = 1e-6;
  options.saver = {.retention = {.keep = 0}, .background = false};
  Supervisor supervisor(run.supervised(), options);
  supervisor.managed_session([&] {
    while (!supervisor.should_stop() && supervisor.global_step() < 8) run.tiny.trainer().minimize();
  });
  EXPECT_EQ(run.tiny.variables().hash(), monitored(8));
  if (test_world().rank() != 0) return;
  EXPECT_GT(saved_steps(run_dir).size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(run_dir + "/metrics.jsonl"));
}

TEST(Supervisor, ServicesRunWithTheSession) {
  std::atomic<int> before{0}, during{0};
  OwnRun run;
  Supervisor supervisor(run.supervised(), until(fresh_run_dir("services"), {}));
  supervisor.loop(0.001, [&] { ++before; }, {.name = "before", .runs_on = RunsOn::chief});
  supervisor.managed_session([&] {
    supervisor.loop(0.001, [&] { ++during; }, {.name = "during"});
    while (!supervisor.should_stop()) {
      run.tiny.trainer().minimize();
      const bool enough = during > 2 && (before > 2 || test_world().rank() != 0);
      if (enough && test_world().rank() == 0) supervisor.request_stop("enough");
    }
  });
  EXPECT_EQ(before > 2, test_world().rank() == 0);
  EXPECT_TRUE(supervisor.coordinator().running_threads().empty());
}

TEST(Supervisor, AnErrorOfAServiceOnOneRankEndsAll) {
  const int last = test_world().size() - 1;
  OwnRun run;
  const std::string run_dir = fresh_run_dir("service_error");
  Supervisor supervisor(run.supervised(), until(run_dir, {}));
  if (test_world().rank() == last)
    supervisor.loop(0.001, [] { throw Error(ErrorKind::data, "the queue is gone"); }, {.name = "reader"});
  const std::string text = shared_error(
      [&] {
        supervisor.managed_session([&] {
          while (!supervisor.should_stop()) run.tiny.trainer().minimize();
        });
      },
      ErrorKind::data);
  EXPECT_THAT(text, AllOf(HasSubstr("reader"), HasSubstr("the queue is gone")));
  if (test_world().rank() == 0) {
    EXPECT_TRUE(saved_steps(run_dir).empty()) << "no checkpoint of a run that failed";
  }
}

TEST(Supervisor, ATransientErrorGoesBackToTheCheckpoint) {
  const std::string run_dir = fresh_run_dir("transient");
  train_and_save(run_dir, 3);
  OwnRun run;
  Supervisor::Options options = until(run_dir, 9);
  options.max_recoveries = 1;
  Supervisor supervisor(run.supervised(), options);
  std::atomic<int> failures{0};
  if (test_world().rank() == 0)
    supervisor.loop(0.001, [&] {
      if (failures++ == 0) throw TransientError(ErrorKind::data, "no answer");
    });
  supervisor.managed_session([&] {
    while (!supervisor.should_stop()) {
      run.tiny.trainer().minimize();
      // Not before the error has come.
      if (test_world().rank() == 0)
        while (failures == 0) std::this_thread::yield();
    }
  });
  EXPECT_EQ(run.tiny.variables().hash(), monitored(9));
}

/// Where the body of one rank throws.
TEST(Supervisor, ABodyThatThrowsOnOneRankEndsAllWithItsError) {
  const int ranks = test_world().size();
  for (const int failing : {0, ranks - 1})
    for (const std::string where :
         {"before the loop", "before the step", "between its halves", "after the step", "after the loop"}) {
      const std::string run_dir = fresh_run_dir("throws");
      OwnRun run;
      Trainer& trainer = run.tiny.trainer();
      Supervisor supervisor(run.supervised(), until(run_dir, 6));
      const auto fail = [&](const char* at) {
        const bool now = where.ends_with("loop") || trainer.global_step() == 2;
        if (where == at && now && test_world().rank() == failing)
          throw Error(ErrorKind::data, "the sensor is broken", "sensor 7");
      };
      const auto body = [&] {
        fail("before the loop");
        while (!supervisor.should_stop()) {
          fail("before the step");
          Gradients& gradients = trainer.compute_gradients();
          fail("between its halves");
          trainer.apply_gradients(gradients);
          fail("after the step");
        }
        fail("after the loop");
      };
      const std::string what = fmt::format("{} on rank {}", where, failing);
      if (ranks == 1) {
        EXPECT_THROW(supervisor.managed_session(body), Error) << what;
      } else {
        const std::string text = shared_error([&] { supervisor.managed_session(body); }, ErrorKind::data);
        EXPECT_THAT(text, AllOf(HasSubstr("the sensor is broken"), HasSubstr("sensor 7"),
                                HasSubstr(fmt::format("on rank {}", failing))))
            << what;
      }
      if (test_world().rank() == 0) {
        EXPECT_TRUE(saved_steps(run_dir).empty()) << what;
      }
    }
}

TEST(Supervisor, AnErrorInAStepThatSavesEndsAllAfterTheCheckpoint) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const int failing : {0, test_world().size() - 1})
    for (const bool between : {true, false}) {
      const std::string run_dir = fresh_run_dir("saving");
      OwnRun run;
      Trainer& trainer = run.tiny.trainer();
      Supervisor supervisor(run.supervised(), until(run_dir, {}));
      const auto body = [&] {
        while (!supervisor.should_stop()) {
          Gradients& gradients = trainer.compute_gradients();
          const bool fails = test_world().rank() == failing;
          if (between && fails && trainer.global_step() == 3) throw Error(ErrorKind::data, "broken");
          trainer.apply_gradients(gradients);
          if (trainer.global_step() == 3) supervisor.request_save();  // which the exchange of step 4 brings
          if (!between && fails && trainer.global_step() == 4) throw Error(ErrorKind::data, "broken");
        }
      };
      EXPECT_THAT(shared_error([&] { supervisor.managed_session(body); }, ErrorKind::data),
                  HasSubstr("broken"));
    }
}

TEST(Supervisor, AnErrorOnOneRankWhileOthersReturnIsNoHang) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs two ranks";
  OwnRun run;
  Supervisor supervisor(run.supervised(), until(fresh_run_dir("returns"), {}));
  const auto body = [&] {
    while (!supervisor.should_stop() && supervisor.global_step() < 3) {
      run.tiny.trainer().minimize();
      if (supervisor.global_step() == 3 && test_world().rank() == 1)
        throw std::runtime_error("the sensor is broken");
    }
  };
  EXPECT_THAT(shared_error([&] { supervisor.managed_session(body); }, ErrorKind::bug),
              HasSubstr("the sensor is broken"));
}

TEST(Supervisor, ALoopThatEndsOnSomeRanksOnlyIsAnError) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs two ranks";
  for (const int ending : {0, test_world().size() - 1}) {
    OwnRun run;
    Supervisor supervisor(run.supervised(), until(fresh_run_dir("some"), {}));
    const auto body = [&] {
      const std::int64_t own_end = test_world().rank() == ending ? 3 : 5;
      while (!supervisor.should_stop() && supervisor.global_step() < own_end) run.tiny.trainer().minimize();
    };
    EXPECT_THAT(shared_error([&] { supervisor.managed_session(body); }, ErrorKind::usage),
                HasSubstr("ended on some ranks"));
  }
}

TEST(Supervisor, AnErrorOfOneRankAtTheStartEndsAll) {
  OwnRun run;
  const int last = test_world().size() - 1;
  Supervisor::Options options = until(fresh_run_dir("start"), 3);
  options.session.local_init = [&](VariableStore&) {
    if (test_world().rank() == last) throw Error(ErrorKind::config, "no table");
  };
  Supervisor supervisor(run.supervised(), options);
  bool called = false;
  EXPECT_THAT(shared_error([&] { supervisor.managed_session([&] { called = true; }); }, ErrorKind::config),
              HasSubstr("no table"));
  EXPECT_FALSE(called);
}

TEST(Supervisor, WaitsForACheckpoint) {
  const std::string run_dir = fresh_run_dir("waits");
  OwnRun run;
  Supervisor::Options options = until(run_dir, 9);
  options.session.recovery_wait_seconds = 0.01;
  options.start = {.wait_for_checkpoint = true, .max_wait_seconds = 0.05};
  Supervisor hopeless(run.supervised(), options);
  shared_error([&] { hopeless.managed_session([] { ADD_FAILURE() << "no checkpoint"; }); },
               ErrorKind::checkpoint);
}

}  // namespace
}  // namespace lockstep
