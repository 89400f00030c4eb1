// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <future>

#include "core/deadline.h"
#include "core/end_of_input.h"
#include "core/last_resort.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kLong = 60;  // seconds; only a failing test waits that long

std::exception_ptr an_error(const std::string& text) {
  return std::make_exception_ptr(Error(ErrorKind::data, text));
}

std::string join_text(Coordinator& coordinator, double grace = kLong) {
  try {
    coordinator.join(grace);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Coordinator, StopRequestStopsAllThreads) {
  Coordinator coordinator;
  EXPECT_FALSE(coordinator.should_stop());
  EXPECT_FALSE(coordinator.wait_for_stop(0));
  std::atomic<int> ended{0};
  for (int i = 0; i < 4; ++i)
    coordinator.start_thread("waiter", [&] {
      if (coordinator.wait_for_stop(kLong)) ++ended;
    });
  coordinator.start_thread("done", [&] { coordinator.request_stop(); });
  EXPECT_TRUE(coordinator.wait_for_stop(kLong));
  coordinator.join(kLong);
  EXPECT_EQ(ended, 4);
  EXPECT_TRUE(coordinator.should_stop());
}

TEST(Coordinator, FirstErrorWinsAndLaterOnesAreKept) {
  Coordinator coordinator;
  coordinator.request_stop(an_error("first"));
  coordinator.request_stop(an_error("second"));
  coordinator.request_stop();
  coordinator.request_stop(an_error("third"));
  EXPECT_EQ(join_text(coordinator), "first");
  ASSERT_EQ(coordinator.later_errors().size(), 2U);
  EXPECT_EQ(text_of(coordinator.later_errors()[0]), "second");
  EXPECT_EQ(text_of(coordinator.later_errors()[1]), "third");
  EXPECT_EQ(join_text(coordinator), "") << "an error is rethrown once";
}

TEST(Coordinator, ErrorAfterAPlainStopIsTheFirstError) {
  Coordinator coordinator;
  coordinator.request_stop();
  coordinator.request_stop(an_error("while stopping"));
  EXPECT_EQ(join_text(coordinator), "while stopping");
}

TEST(Coordinator, ErrorAfterJoinIsRethrownLater) {
  Coordinator coordinator;
  coordinator.join(kLong);
  coordinator.request_stop(an_error("late"));
  EXPECT_THROW(coordinator.rethrow_error(), Error);
  coordinator.rethrow_error();  // not a second time
}

TEST(Coordinator, EndOfInputAndCancelledAreNotErrors) {
  for (const std::exception_ptr& end :
       {std::make_exception_ptr(EndOfInput("a queue")), std::make_exception_ptr(Cancelled("a pop"))}) {
    Coordinator coordinator;
    coordinator.request_stop(end);
    EXPECT_TRUE(coordinator.should_stop());
    EXPECT_EQ(join_text(coordinator), "");
    EXPECT_TRUE(coordinator.later_errors().empty());
  }
}

TEST(Coordinator, ConcurrentErrorsAreAllKept) {
  Coordinator coordinator;
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future().share();
  constexpr int kThreads = 8;
  for (int i = 0; i < kThreads; ++i)
    coordinator.start_thread(fmt::format("t{}", i), [gate] {
      gate.wait();
      throw Error(ErrorKind::data, "torn");
    });
  go.set_value();
  EXPECT_TRUE(coordinator.wait_for_threads(kLong));
  EXPECT_THAT(join_text(coordinator), HasSubstr("torn"));
  EXPECT_EQ(coordinator.later_errors().size(), kThreads - 1U);
}

TEST(Coordinator, ThreadErrorHasNameAndKind) {
  Coordinator coordinator;
  coordinator.start_thread("reader",
                           [] { throw Error(ErrorKind::data, "record 7 is torn", "a.csv:7", "Repair it."); });
  try {
    coordinator.wait_for_threads(kLong);
    coordinator.join(kLong);
    FAIL() << "no error";
  } catch (const ThreadError& error) {
    EXPECT_EQ(error.thread(), "reader");
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_STREQ(error.what(), "thread 'reader', a.csv:7: record 7 is torn\n  Repair it.");
    EXPECT_THROW(std::rethrow_exception(error.original()), Error);
  }
}

TEST(Coordinator, AnyExceptionOfAThreadIsAnError) {
  Coordinator coordinator;
  coordinator.start_thread("a", [] { throw 42; });
  coordinator.wait_for_threads(kLong);
  EXPECT_EQ(join_text(coordinator), "thread 'a': an exception of unknown type");
}

TEST(Coordinator, StopOnExceptionReturnsWhetherOneWasThrown) {
  Coordinator coordinator;
  EXPECT_TRUE(coordinator.stop_on_exception([] {}));
  EXPECT_FALSE(coordinator.should_stop());
  EXPECT_FALSE(coordinator.stop_on_exception([] { throw std::runtime_error("broken"); }));
  EXPECT_TRUE(coordinator.should_stop());
  EXPECT_EQ(join_text(coordinator), "broken");
}

TEST(Coordinator, JoinNamesThreadsThatDoNotEnd) {
  Coordinator coordinator;
  std::promise<void> release;
  coordinator.start_thread("stuck", [gate = release.get_future().share()] { gate.wait(); });
  coordinator.start_thread("obedient", [&] { coordinator.wait_for_stop(kLong); });
  coordinator.request_stop();
  while (coordinator.running_threads().size() > 1) std::this_thread::yield();
  EXPECT_EQ(join_text(coordinator, 0.01),
            "a thread has not ended within 0.01 s of the stop request: 'stuck'\n"
            "  Poll should_stop() more often in these threads.");
  EXPECT_THAT(coordinator.running_threads(), ElementsAre("stuck"));
  release.set_value();
  coordinator.join(kLong);
  EXPECT_TRUE(coordinator.running_threads().empty());
}

TEST(Coordinator, ErrorTakesPrecedenceOverAStuckThread) {
  Coordinator coordinator;
  std::promise<void> release;
  coordinator.start_thread("stuck", [gate = release.get_future().share()] { gate.wait(); });
  coordinator.request_stop(an_error("the cause"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(join_text(coordinator, 0.01), "the cause");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'stuck'"));
  release.set_value();
  EXPECT_TRUE(coordinator.wait_for_threads(kLong)) << "the destructor does not wait again";
}

TEST(Coordinator, RegistersRunningThreads) {
  Coordinator coordinator;
  coordinator.register_thread("theirs", std::thread([&] { coordinator.wait_for_stop(kLong); }));
  EXPECT_THAT(coordinator.running_threads(), ElementsAre("theirs"));
  EXPECT_FALSE(coordinator.wait_for_threads(0));
  coordinator.join(kLong);
  EXPECT_TRUE(coordinator.running_threads().empty());
  EXPECT_THROW(coordinator.register_thread("none", std::thread()), Error);
}

TEST(Coordinator, StartsAgainAfterClearStop) {
  Coordinator coordinator;
  coordinator.request_stop(an_error("transient"));
  EXPECT_EQ(join_text(coordinator), "transient");
  coordinator.clear_stop();
  EXPECT_FALSE(coordinator.should_stop());
  EXPECT_FALSE(coordinator.stop_token().stop_requested());
  EXPECT_TRUE(coordinator.later_errors().empty());
  std::atomic<bool> ran{false};
  coordinator.start_thread("again", [&] { ran = true; });
  EXPECT_TRUE(coordinator.wait_for_threads(kLong));
  coordinator.request_stop(an_error("second life"));
  EXPECT_EQ(join_text(coordinator), "second life");
  EXPECT_TRUE(ran);
}

TEST(Coordinator, ClearStopRejectsRunningThreads) {
  Coordinator coordinator;
  coordinator.start_thread("busy", [&] { coordinator.wait_for_stop(kLong); });
  EXPECT_THROW(coordinator.clear_stop(), Error);
}

TEST(Coordinator, StopRunsTokenCallbacks) {
  Coordinator coordinator;
  bool called = false;
  const std::stop_callback callback(coordinator.stop_token(), [&] {
    called = true;
    EXPECT_TRUE(coordinator.should_stop());
    EXPECT_TRUE(coordinator.running_threads().empty()) << "the lock is not held";
  });
  EXPECT_FALSE(called);
  coordinator.request_stop();
  EXPECT_TRUE(called);
}

TEST(Coordinator, DestructorStopsJoinsAndLogsTheError) {
  std::atomic<bool> stopped{false};
  testing::internal::CaptureStderr();
  {
    Coordinator coordinator;
    coordinator.start_thread("service", [&] { stopped = coordinator.wait_for_stop(kLong); });
    coordinator.request_stop(an_error("unseen"));
  }
  EXPECT_TRUE(stopped);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("this error was not rethrown by join(): unseen"));
}

TEST(CoordinatorDeathTest, DestructorEndsTheProcessIfAThreadHangs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        std::promise<void> never;
        Coordinator coordinator(0.01);
        coordinator.start_thread("stuck", [gate = never.get_future().share()] { gate.wait(); });
        coordinator.request_stop(an_error("torn"));
      },
      testing::ExitedWithCode(3),
      "a thread has not ended within 0.01 s of the stop request: 'stuck'; the process ends here");
}

TEST(CoordinatorDeathTest, TheProgramsLastResortIsAskedBeforeThat) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const LastResortScope outer([](int, const std::string& message) {
          std::fprintf(stderr, "then: %s\n", message.c_str());
          std::_Exit(42);
        });
        const LastResortScope inner(
            [](int code, const std::string&) { std::fprintf(stderr, "code %d; ", code); });
        const LastResortScope none({});
        std::promise<void> never;
        Coordinator coordinator(0.01);
        coordinator.start_thread("stuck", [gate = never.get_future().share()] { gate.wait(); });
        coordinator.request_stop(an_error("torn"));
      },
      testing::ExitedWithCode(42),
      "code 3; then: a thread has not ended within 0.01 s of the stop request: 'stuck'");
}

TEST(Deadline, AcceptsAnyNumberOfSeconds) {
  const auto now = std::chrono::steady_clock::now();
  EXPECT_LT(deadline_after(-1), now + std::chrono::hours(1));
  EXPECT_LT(deadline_after(std::numeric_limits<double>::quiet_NaN()), now + std::chrono::hours(1));
  EXPECT_GT(deadline_after(kNoLimit), now + std::chrono::hours(24 * 365));
}

}  // namespace
}  // namespace lockstep
