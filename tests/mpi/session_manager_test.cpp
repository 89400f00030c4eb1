// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a session gets its values, on any number of ranks: from the checkpoint or as initialised, what is
// called when, waits for another job, and errors of one rank.
#include "session/session_manager.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>

#include "core/run_signals.h"
#include "support/session_run.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void set_all(VariableStore& variables, float value) {
  std::ranges::fill(variables.trainable_values(), value);
}

TEST(SessionManager, ANewRunHasInitialValuesThenInitFnThenLocalInit) {
  std::vector<std::string> calls;
  OwnRun run;
  SessionManager manager(run.values(), {.run_dir = fresh_run_dir("manager"),
                                        .init_fn =
                                            [&](VariableStore& variables) {
                                              calls.emplace_back("init_fn");
                                              set_all(variables, 0.25F);
                                            },
                                        .local_init =
                                            [&](VariableStore& variables) {
                                              EXPECT_EQ(variables.trainable_values()[0], 0.25F);
                                              calls.emplace_back("local_init");
                                            },
                                        .ready =
                                            [&] {
                                              calls.emplace_back("ready");
                                              return "";
                                            }});
  EXPECT_EQ(manager.prepare().restored_step, -1);
  EXPECT_THAT(calls, testing::ElementsAre("init_fn", "local_init", "ready"));
  EXPECT_EQ(run.tiny.trainer().global_step(), 0);
}

TEST(SessionManager, ACheckpointIsRestoredWithoutInitFn) {
  const std::string run_dir = fresh_run_dir("restored");
  const std::uint64_t trained = train_and_save(run_dir, 4);
  OwnRun run;
  int local = 0;
  SessionManager manager(run.values(), {.run_dir = run_dir,
                                        .init_fn = [](VariableStore&) { ADD_FAILURE() << "restored"; },
                                        .local_init = [&](VariableStore&) { ++local; }});
  ASSERT_NE(run.tiny.variables().hash(), trained);
  EXPECT_EQ(manager.prepare().restored_step, 4);
  EXPECT_EQ(run.tiny.variables().hash(), trained);
  EXPECT_EQ(run.tiny.trainer().global_step(), 4);
  EXPECT_EQ(local, 1);
  // Again, after steps: back to the checkpoint.
  run.tiny.trainer().minimize();
  EXPECT_NE(run.tiny.variables().hash(), trained);
  EXPECT_TRUE(manager.recover());
  EXPECT_EQ(run.tiny.variables().hash(), trained);
  EXPECT_EQ(local, 2);
}

TEST(SessionManager, PrepareAgainWithoutACheckpointBeginsAnew) {
  OwnRun run;
  SessionManager manager(run.values(), {.run_dir = fresh_run_dir("anew")});
  manager.prepare();
  const std::uint64_t initial = run.tiny.variables().hash();
  run.tiny.trainer().minimize();
  EXPECT_FALSE(manager.recover()) << "there is no checkpoint";
  EXPECT_NE(run.tiny.variables().hash(), initial);
  manager.prepare();
  EXPECT_EQ(run.tiny.variables().hash(), initial);
  EXPECT_EQ(run.tiny.trainer().global_step(), 0);
}

TEST(SessionManager, ErrorsOfOneRankAreErrorsOfAll) {
  const int last = test_world().size() - 1;
  const auto here = [&] { return test_world().rank() == last; };
  for (const std::string where : {"init_fn", "local_init", "ready"}) {
    const auto fails = [&](const char* at) {
      if (where == at && here()) throw Error(ErrorKind::data, "the sensor is broken");
    };
    OwnRun run;
    SessionManager manager(run.values(), {.run_dir = fresh_run_dir("errors"),
                                          .init_fn = [&](VariableStore&) { fails("init_fn"); },
                                          .local_init = [&](VariableStore&) { fails("local_init"); },
                                          .ready =
                                              [&] {
                                                fails("ready");
                                                return "";
                                              }});
    const std::string text = shared_error([&] { manager.prepare(); }, ErrorKind::data);
    EXPECT_THAT(text, HasSubstr("the sensor is broken")) << where;
    if (last > 0) {
      EXPECT_THAT(text, HasSubstr(fmt::format("on rank {}", last))) << where;
    }
  }
}

TEST(SessionManager, ARankThatIsNotReadyIsAnErrorOfAll) {
  OwnRun run;
  const int last = test_world().size() - 1;
  SessionManager manager(run.values(), {.run_dir = fresh_run_dir("not_ready"), .ready = [&] {
                                          return test_world().rank() == last ? "no lookup table" : "";
                                        }});
  EXPECT_THAT(shared_error([&] { manager.prepare(); }, ErrorKind::config),
              HasSubstr("the session is not ready: no lookup table"));
}

TEST(SessionManager, NamesVariablesWithoutValues) {
  OwnRun run;
  const_cast<Variable&>(run.tiny.variables()[VariableId{0}]).initializer = nullptr;
  run.tiny.variables().initialize(4);
  SessionManager manager(run.values(), {.run_dir = fresh_run_dir("unset")});
  EXPECT_THAT(
      shared_error([&] { manager.prepare(); }, ErrorKind::config),
      AllOf(HasSubstr("no values: " + run.tiny.variables()[VariableId{0}].name), HasSubstr("init_fn")));
  SessionManager given(run.values(),
                       {.run_dir = fresh_run_dir("unset"),
                        .init_fn = [](VariableStore& variables) { variables.mark_set(VariableId{0}); }});
  given.prepare();
}

TEST(SessionManager, WaitsForACheckpointOnlyUntilTheLimit) {
  OwnRun run;
  SessionManager manager(run.values(), {.run_dir = fresh_run_dir("limit"), .recovery_wait_seconds = 0.01});
  EXPECT_THAT(shared_error([&] { manager.prepare({.wait_for_checkpoint = true, .max_wait_seconds = 0.05}); },
                           ErrorKind::checkpoint),
              HasSubstr("for a checkpoint"));
  EXPECT_THAT(shared_error([&] { manager.wait_for_session(0.05); }, ErrorKind::checkpoint),
              HasSubstr("for a session that is ready"));
  SessionManager patient(run.values(), {.run_dir = fresh_run_dir("limit"), .recovery_wait_seconds = 30});
  // The next look would be too late: an error at once.
  shared_error([&] { patient.wait_for_session(1); }, ErrorKind::checkpoint);
}

TEST(SessionManager, WaitsForTheCheckpointOfAnotherJob) {
  const std::string run_dir = fresh_run_dir("other_job"), elsewhere = fresh_run_dir("elsewhere");
  const std::uint64_t trained = train_and_save(elsewhere, 3);
  OwnRun run;
  SessionManager manager(run.values(), {.run_dir = run_dir,
                                        .init_fn = [](VariableStore&) { ADD_FAILURE() << "restored"; },
                                        .recovery_wait_seconds = 0.02});
  Coordinator other;  // the other job
  if (test_world().rank() == 0)
    other.start_thread("job", [&] {
      other.wait_for_stop(0.1);
      std::filesystem::rename(elsewhere, run_dir);
    });
  EXPECT_EQ(manager.prepare({.wait_for_checkpoint = true, .max_wait_seconds = 60}).restored_step, 3);
  EXPECT_EQ(run.tiny.variables().hash(), trained);
  other.join();
}

TEST(SessionManager, TriesAgainUntilAllRanksAreReady) {
  const std::string run_dir = fresh_run_dir("until_ready");
  train_and_save(run_dir, 2);
  OwnRun run;
  int asked = 0, local = 0;
  const int last = test_world().size() - 1;
  SessionManager manager(run.values(), {.run_dir = run_dir,
                                        .local_init = [&](VariableStore&) { ++local; },
                                        .ready =
                                            [&] {
                                              ++asked;
                                              const bool late = test_world().rank() == last && asked < 3;
                                              return late ? "not yet" : "";
                                            },
                                        .recovery_wait_seconds = 0.01});
  EXPECT_EQ(manager.wait_for_session(60).restored_step, 2);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(local, 3) << "each time that values were set";
}

TEST(SessionManager, ACheckpointOfAnotherSeedIsRefused) {
  const std::string run_dir = fresh_run_dir("seed");
  train_and_save(run_dir, 2);
  OwnRun run;
  SessionValues values = run.values();
  values.seed = 77;
  SessionManager manager(values, {.run_dir = run_dir});
  EXPECT_THAT(shared_error([&] { manager.prepare(); }, ErrorKind::checkpoint), HasSubstr("seed 4"));
}

}  // namespace
}  // namespace lockstep
