// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Flight recorder and watchdog in one process.
#include "comm/watchdog.h"
#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::Not;

RankStatus status(bool in_call, const char* call, const char* phase, double seconds) {
  RankStatus status;
  status.in_call = in_call ? 1 : 0;
  status.seconds = seconds;
  std::snprintf(status.call.data(), status.call.size(), "%s", call);
  std::snprintf(status.phase.data(), status.phase.size(), "%s", phase);
  std::snprintf(status.host.data(), status.host.size(), "b");
  return status;
}

TEST(FlightRecorder, KeepsTheLastCalls) {
  FlightRecorder recorder;
  for (int i = 0; i < 100; ++i) recorder.end(recorder.begin(("call " + std::to_string(i)).c_str(), 8, -1));
  EXPECT_EQ(recorder.calls_ended(), 100U);
  const std::string all = recorder.last_calls(1000);
  EXPECT_THAT(all, HasSubstr("#100 'call 99' 8 bytes"));
  EXPECT_THAT(all, HasSubstr("#37 'call 36' 8 bytes"));
  EXPECT_THAT(all, Not(HasSubstr("'call 35'")));
  EXPECT_THAT(recorder.last_calls(1), Not(HasSubstr("'call 98'")));
  EXPECT_FALSE(recorder.oldest_open().has_value());
}

TEST(FlightRecorder, FindsTheOldestOpenCall) {
  FlightRecorder recorder;
  const auto first = recorder.begin("first", 1, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto second = recorder.begin("second", 2, -1);
  ASSERT_TRUE(recorder.oldest_open().has_value());
  EXPECT_STREQ(recorder.oldest_open()->name.data(), "first");
  EXPECT_EQ(recorder.oldest_open()->peer, 3);
  recorder.end(first);
  EXPECT_STREQ(recorder.oldest_open()->name.data(), "second");
  recorder.end(second);
}

TEST(FlightRecorder, LimitsTextLengthAndOpenCalls) {
  FlightRecorder recorder;
  const std::string longer(200, 'x');
  recorder.set_phase(longer.c_str());
  EXPECT_EQ(recorder.phase(), std::string(63, 'x'));
  std::vector<FlightRecorder::Ticket> tickets;
  for (int i = 0; i < FlightRecorder::kOpen + 3; ++i)
    tickets.push_back(recorder.begin(longer.c_str(), 0, -1));
  EXPECT_EQ(tickets.back(), -1);
  EXPECT_EQ(std::string(recorder.oldest_open()->name.data()), std::string(55, 'x'));
  for (const auto ticket : tickets) recorder.end(ticket);
  EXPECT_FALSE(recorder.oldest_open().has_value());
}

TEST(Watchdog, FiresAtALongCall) {
  std::promise<std::string> fire;
  auto fired = fire.get_future();
  Watchdog watchdog(0.1, {3, 8, "a"}, nullptr,
                    [&](const std::string& message, bool) { fire.set_value(message); });
  set_phase("step 17");
  const auto ticket = flight_recorder().begin("batch_norm bn1", 64, 5);
  ASSERT_EQ(fired.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  flight_recorder().end(ticket);
  set_phase("");
  const std::string message = fired.get();
  EXPECT_THAT(message, HasSubstr("rank 3 of 8 on host a has waited"));
  EXPECT_THAT(message, HasSubstr("in 'batch_norm bn1' for rank 5 (phase 'step 17')"));
}

TEST(Watchdog, DoesNotFireForShortCallsOrWhenOff) {
  std::atomic<int> times_fired{0};
  Watchdog watchdog(0.3, {0, 1, "a"}, nullptr, [&](const std::string&, bool) { ++times_fired; });
  for (int i = 0; i < 30; ++i) {
    const auto ticket = flight_recorder().begin("short", 1, -1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    flight_recorder().end(ticket);
  }
  watchdog.set_timeout_seconds(0);
  const auto ticket = flight_recorder().begin("long", 1, -1);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  flight_recorder().end(ticket);
  watchdog.stop();
  EXPECT_EQ(times_fired, 0);
}

// Peers that answer with given statuses.
class FakePeers : public WatchdogPeers {
 public:
  explicit FakePeers(std::vector<std::optional<RankStatus>> others) : others_(std::move(others)) {}
  void answer(const RankStatus&) override {}
  std::vector<std::optional<RankStatus>> ask_all(const RankStatus&, double) override { return others_; }

 private:
  std::vector<std::optional<RankStatus>> others_;
};

double seconds_until_fired(int rank, const RankStatus& rank0) {
  std::promise<void> fire;
  auto fired = fire.get_future();
  auto peers = std::make_unique<FakePeers>(std::vector<std::optional<RankStatus>>{rank0, std::nullopt});
  const auto begin = std::chrono::steady_clock::now();
  Watchdog watchdog(0.2, {rank, 2, "a"}, std::move(peers),
                    [&](const std::string&, bool) { fire.set_value(); });
  const auto ticket = flight_recorder().begin("call", 1, -1);
  EXPECT_EQ(fired.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  flight_recorder().end(ticket);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Watchdog, WaitsForALowerRankWithALimit) {
  EXPECT_LT(seconds_until_fired(1, status(false, "", "reading", 10)), 3);
  EXPECT_GE(seconds_until_fired(1, status(true, "call", "", 10)), 3.5);
}

/// The seconds until a watchdog with a limit of 0.2 s fires because of `peer`; 0 if it does not fire within
/// `patience`.
double seconds_until_fired_by(const std::optional<RankStatus>& peer, double patience) {
  std::promise<void> fire;
  auto fired = fire.get_future();
  auto peers = std::make_unique<FakePeers>(std::vector<std::optional<RankStatus>>{std::nullopt, peer});
  const auto begin = std::chrono::steady_clock::now();
  Watchdog watchdog(0.2, {0, 2, "a"}, std::move(peers), [&](const std::string&, bool) { fire.set_value(); });
  const auto ticket = flight_recorder().begin("call", 1, -1);
  const bool ready = fired.wait_for(std::chrono::duration<double>(patience)) == std::future_status::ready;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  watchdog.stop();
  flight_recorder().end(ticket);
  return ready ? seconds : 0;
}

TEST(Watchdog, LongPhaseExtendsTheLimit) {
  RankStatus saving = status(false, "", "saving a checkpoint", 1.9);
  EXPECT_GT(seconds_until_fired_by(saving, 30), 0) << "an ordinary phase";
  saving.may_take_long = 1;
  EXPECT_EQ(seconds_until_fired_by(saving, 1.5), 0) << "less than ten times the limit";
  saving.seconds = 2.1;
  EXPECT_GT(seconds_until_fired_by(saving, 30), 0) << "more than ten times the limit";
  RankStatus stuck = status(true, "broadcast", "restoring", 1);
  stuck.may_take_long = 1;
  EXPECT_GT(seconds_until_fired_by(stuck, 30), 0) << "it waits for another rank itself";
  EXPECT_GT(seconds_until_fired_by(std::nullopt, 30), 0) << "no answer";
}

TEST(Watchdog, WithoutPeersTheLimitIsTenTimes) {
  std::promise<void> fire;
  auto fired = fire.get_future();
  const auto begin = std::chrono::steady_clock::now();
  Watchdog watchdog(0.1, {0, 2, "a"}, nullptr, [&](const std::string&, bool) { fire.set_value(); });
  const auto ticket = flight_recorder().begin("call", 1, -1);
  EXPECT_EQ(fired.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  flight_recorder().end(ticket);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(FlightRecorder, NextPhaseEndsALongPhase) {
  FlightRecorder recorder;
  EXPECT_FALSE(recorder.phase_may_take_long());
  recorder.set_phase("saving", true);
  EXPECT_TRUE(recorder.phase_may_take_long());
  recorder.set_phase("step 2");
  EXPECT_FALSE(recorder.phase_may_take_long());
}

TEST(FlightRecorder, ReturnsTheLastCallsThatFit) {
  FlightRecorder recorder;
  std::array<FlightRecorder::Call, 3> calls;
  EXPECT_EQ(recorder.last_calls(calls), 0);
  for (int i = 0; i < 70; ++i) recorder.end(recorder.begin(std::to_string(i).c_str(), 8, -1));
  EXPECT_EQ(recorder.last_calls(calls), 3);
  EXPECT_STREQ(calls[0].name.data(), "67");
  EXPECT_STREQ(calls[2].name.data(), "69");
}

void add_past(RankStatus& status, std::uint64_t number, const char* name, double seconds_ago) {
  RankStatus::PastCall& call = status.past[static_cast<std::size_t>(status.num_past++)];
  call.number = number;
  call.seconds_ago = seconds_ago;
  std::snprintf(call.name.data(), call.name.size(), "%s", name);
}

TEST(WatchdogMessage, ListsLastCallsOfOtherRanks) {
  FlightRecorder::Call call;
  std::vector<std::optional<RankStatus>> others(4);
  others[1] = status(true, "loss", "step 4", 60);
  add_past(*others[1], 41, "gradients 1 of 2", 61.5);
  add_past(*others[1], 42, "gradients 2 of 2", 60.25);
  others[2] = status(false, "", "step 3", 60);
  add_past(*others[2], 40, "loss", 62);
  const std::string text = watchdog_message({0, 4, "a"}, call, 60, others);
  EXPECT_THAT(
      text,
      HasSubstr("  The last calls of the other ranks, oldest first:\n"
                "  rank 2: #40 'loss' 62.000 s ago\n"
                "  rank 1: #41 'gradients 1 of 2' 61.500 s ago, #42 'gradients 2 of 2' 60.250 s ago\n"));
}

TEST(WatchdogMessage, NamesHostOfUnresponsiveRanks) {
  FlightRecorder::Call call;
  std::vector<std::optional<RankStatus>> others(4);
  others[1] = status(true, "gradients", "step 4", 60);
  const std::string text = watchdog_message({0, 4, "a", {"a", "a", "b", "b"}}, call, 60, others);
  EXPECT_THAT(text, HasSubstr("  ranks 2-3: no answer from host b: dead, stopped, disconnected"));
}

TEST(Watchdog, HostIsLostIfNoneOfItsRanksAnswers) {
  const WatchdogIdentity identity{0, 4, "a", {"a", "a", "b", "b"}};
  std::vector<std::optional<RankStatus>> others(4);
  EXPECT_TRUE(is_host_lost(identity, others));
  others[3] = status(true, "gradients", "step 4", 60);
  EXPECT_FALSE(is_host_lost(identity, others)) << "a rank of host b answers; rank 1 is on this host";
  EXPECT_FALSE(is_host_lost({0, 4, "a"}, others)) << "the hosts are not known";
  EXPECT_FALSE(is_host_lost(identity, {})) << "no rank was asked";
}

/// Peers whose messages fail, as over a lost network.
class BrokenPeers : public WatchdogPeers {
 public:
  void answer(const RankStatus&) override {}
  std::vector<std::optional<RankStatus>> ask_all(const RankStatus&, double) override {
    throw Error(ErrorKind::communication, "no route");
  }
};

TEST(Watchdog, FailingPeersDoNotExtendTheLimit) {
  std::promise<std::string> fire;
  auto fired = fire.get_future();
  const auto begin = std::chrono::steady_clock::now();
  Watchdog watchdog(1, {0, 2, "a"}, std::make_unique<BrokenPeers>(),
                    [&](const std::string& message, bool) { fire.set_value(message); });
  const auto ticket = flight_recorder().begin("call", 1, -1);
  ASSERT_EQ(fired.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  flight_recorder().end(ticket);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9)) << "not ten times the limit";
  EXPECT_THAT(fired.get(), HasSubstr("The watchdogs cannot exchange messages: no route"));
}

TEST(WatchdogMessage, IsShortForManyRanks) {
  FlightRecorder::Call call;
  std::vector<std::optional<RankStatus>> others(5000);
  for (std::size_t rank = 0; rank < others.size(); ++rank) {
    others[rank] = status(true, ("call " + std::to_string(rank)).c_str(), "", 60);
    for (int i = 0; i < RankStatus::kPastCalls; ++i) add_past(*others[rank], 1, "x", 1);
  }
  others[3000]->in_call = 0;
  const std::string text = watchdog_message({0, 5000, "a"}, call, 60, others);
  EXPECT_LT(text.size(), 10000U);
  EXPECT_THAT(text, HasSubstr("\n  rank 3000: #1 'x'"));
  EXPECT_THAT(text, HasSubstr("  ... and 4983 other ranks\n"));
}

TEST(WatchdogMessage, ListsStatesOfOtherRanks) {
  FlightRecorder::Call call;
  std::snprintf(call.name.data(), call.name.size(), "gradients 1 of 2");
  std::vector<std::optional<RankStatus>> others(6);
  others[0] = others[1] = others[2] = status(true, "gradients 1 of 2", "step 4", 299);
  others[3] = status(false, "", "reading data", 301);
  others[5] = status(true, "batch_norm bn1", "step 3", 300);
  const std::string text = watchdog_message({1, 6, "a"}, call, 300.4, others);
  EXPECT_THAT(text, HasSubstr("rank 1 of 6 on host a has waited 300 s in 'gradients 1 of 2'"));
  EXPECT_EQ(text.find("error: the run hangs: rank"), 0U) << text;
  EXPECT_THAT(
      text, HasSubstr("  ranks 0, 2: waiting in 'gradients 1 of 2' (phase 'step 4') on host b, for 299 s\n"));
  EXPECT_THAT(text,
              HasSubstr("  rank 3: in no communication call (phase 'reading data') on host b, for 301 s\n"));
  EXPECT_THAT(text, HasSubstr("  rank 4: no answer"));
  EXPECT_THAT(text, HasSubstr("  rank 5: waiting in 'batch_norm bn1' (phase 'step 3')"));
  EXPECT_LT(text.find("rank 4: no answer"), text.find("rank 3:")) << "suspects come first";
  EXPECT_LT(text.find("rank 3:"), text.find("ranks 0, 2:"));
}

}  // namespace
}  // namespace lockstep
