// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rank sends and follows: the most severe of its requests, errors and interruptions.
#include "session/stop_control.h"

#include <gtest/gtest.h>

#include "comm/self_communicator.h"
#include "comm/small_sum.h"

namespace lockstep {
namespace {

using Severity = StopControl::Severity;

/// A session of one rank without steps: only the exchange.
struct Stage {
  Stage() { values.allocate(); }
  StopControl::Agreement exchange_values() {
    stop.send();
    *exchange.leaf(0) = 0;
    exchange.reduce("a step");
    return stop.agreement();
  }

  SelfCommunicator self;
  SmallSum exchange{self, 1, 0, 1};
  RankValues values{exchange, 1};
  RunReports reports{false, "", {.events = false, .metrics = false}};
  StopControl stop{false, reports, values};
};

TEST(StopControl, RequestStopsAfterTheStep) {
  Stage stage;
  EXPECT_EQ(stage.exchange_values().severity, Severity::none);
  stage.stop.request_stop("a test asks for it");
  const StopControl::Agreement agreement = stage.exchange_values();
  EXPECT_EQ(agreement.severity, Severity::stop);
  EXPECT_FALSE(stage.stop.should_stop()) << "the hooks of the step still run";
  stage.stop.follow(agreement, 7);
  EXPECT_TRUE(stage.stop.should_stop());
  EXPECT_FALSE(stage.stop.interruption().any());
}

TEST(StopControl, AStopForGoodTravelsWithTheExchangeAndNamesTheHook) {
  Stage stage;
  stage.stop.set_caller("watch");
  stage.stop.stop_for_good("the loss is low");
  stage.stop.set_caller({});
  EXPECT_FALSE(stage.stop.should_stop()) << "the other ranks do not know it yet";
  const StopControl::Agreement agreement = stage.exchange_values();
  EXPECT_EQ(agreement.severity, Severity::stop);
  stage.stop.follow(agreement, 7);
  EXPECT_TRUE(stage.stop.should_stop());
  stage.stop.share_reasons(stage.self);
  EXPECT_EQ(stage.stop.final_reason(), "the loss is low (hook watch)");
  EXPECT_EQ(stage.stop.reason(), "the loss is low (hook watch)");
}

TEST(StopControl, AReasonOfTheEndPrevailsOverOneOfAStop) {
  Stage stage;
  stage.stop.request_stop("the time is over");
  stage.stop.share_reasons(stage.self);
  EXPECT_EQ(stage.stop.reason(), "the time is over");
  EXPECT_EQ(stage.stop.final_reason(), "");
  stage.stop.set_caller("watch");
  stage.stop.finish_now("the loss is low");
  stage.stop.share_reasons(stage.self);
  EXPECT_EQ(stage.stop.reason(), "the loss is low (hook watch)");
}

TEST(StopControl, ErrorPrevailsAndTheFirstOneIsKept) {
  Stage stage;
  stage.stop.request_stop("a test asks for it");
  const Error first(ErrorKind::data, "first"), second(ErrorKind::data, "second");
  stage.stop.keep_error(first, std::make_exception_ptr(first), true);
  stage.stop.keep_error(second, std::make_exception_ptr(second), false);
  EXPECT_EQ(stage.exchange_values().severity, Severity::transient_error);
  try {
    stage.stop.rethrow_error();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.what_happened(), "first");
  }
  stage.stop.clear_error();
  stage.stop.rethrow_error();
  EXPECT_EQ(stage.exchange_values().severity, Severity::stop);
}

TEST(StopControl, InterruptionIsFollowedUnlessTheRunEnds) {
  for (const bool ends : {false, true}) {
    Stage stage;
    stage.stop.interruptions().add([] { return InterruptionRequest{Interruption::requeue, 10}; });
    const StopControl::Agreement agreement = stage.exchange_values();
    EXPECT_EQ(agreement.severity, Severity::none);
    if (ends) stage.stop.finish_now("the run is done");
    stage.stop.follow(agreement, 7);
    EXPECT_TRUE(stage.stop.should_stop());
    EXPECT_EQ(stage.stop.interruption().any(), !ends);
    EXPECT_EQ(stage.stop.final_reason(), ends ? "the run is done" : "");
    if (!ends) {
      EXPECT_EQ(stage.stop.interruption().kind, Interruption::requeue);
      EXPECT_EQ(stage.stop.interruption().reason, 10);
    }
  }
}

}  // namespace
}  // namespace lockstep
