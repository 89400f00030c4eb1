// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Arrows of a trace, and clocks that differ.
#include "session/trace_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Kind = TraceMessage::Kind;

PlacedMessage placed(Kind kind, int rank, int from, int to, std::uint64_t number, std::int64_t begin,
                     std::int64_t end) {
  return {{.kind = kind,
           .ranks = 2,
           .from = from,
           .to = to,
           .channel = 9,
           .number = number,
           .begin_ns = begin,
           .end_ns = end},
          rank,
          1};
}

Json events(const std::string& text) { return Json::parse("[" + text + "]"); }

TEST(TraceFile, AMessageIsFoundByItsNumber) {
  const Json arrows = events(flow_events(
      {placed(Kind::sent, 0, 0, 1, 0, 1000, 2000), placed(Kind::sent, 0, 0, 1, 1, 5000, 6000),
       placed(Kind::received, 1, 0, 1, 1, 100, 9000), placed(Kind::received, 1, 0, 1, 0, 50, 90000)},
      2, 0));
  ASSERT_EQ(arrows.size(), 4u);
  EXPECT_EQ(arrows[0]["ts"], 1.0);
  EXPECT_EQ(arrows[1]["ts"], 90.0);
  EXPECT_EQ(arrows[0]["id"], arrows[1]["id"]);
  EXPECT_EQ(arrows[2]["ts"], 5.0);
  EXPECT_EQ(arrows[3]["ts"], 9.0);
  EXPECT_NE(arrows[0]["id"], arrows[2]["id"]);
}

TEST(TraceFile, WhatHasOneEndOrCannotBeHasNoArrow) {
  EXPECT_EQ(flow_events({placed(Kind::sent, 0, 0, 1, 0, 1000, 2000)}, 2, 0), "");
  EXPECT_EQ(flow_events({placed(Kind::joined, 0, -1, -1, 0, 1000, 2000)}, 2, 0), "");
  const std::vector<PlacedMessage> backwards{placed(Kind::sent, 0, 0, 1, 0, 1000, 2000),
                                             placed(Kind::received, 1, 0, 1, 0, 10, 900)};
  EXPECT_EQ(flow_events(backwards, 2, 99), "");
  EXPECT_NE(flow_events(backwards, 2, 100), "");
  EXPECT_EQ(
      flow_events(
          {placed(Kind::sent, 0, 0, 0, 0, 1000, 2000), placed(Kind::received, 0, 0, 0, 0, 1000, 2000)}, 2, 0),
      "");
}

TEST(TraceFile, ACollectiveCallWaitsForItsLastRank) {
  const Json arrows = events(flow_events(
      {placed(Kind::joined, 0, -1, -1, 4, 1000, 8000), placed(Kind::joined, 1, -1, -1, 4, 7000, 8500),
       placed(Kind::joined, 2, -1, -1, 4, 3000, 8200)},
      3, 0));
  ASSERT_EQ(arrows.size(), 4u);
  for (const int begin : {0, 2}) {
    EXPECT_EQ(arrows[static_cast<std::size_t>(begin)]["pid"], 1);
    EXPECT_EQ(arrows[static_cast<std::size_t>(begin)]["ts"], 7.0);
  }
  EXPECT_EQ(arrows[1]["args"]["waited_us"], 6.0);
  EXPECT_EQ(arrows[3]["args"]["waited_us"], 4.0);
}

TEST(TraceFile, ShiftsPutRanksOnOneClock) {
  ThreadTrace thread{.thread = "main"};
  TraceSpan span;
  span.category = "communication";
  span.begin_ns = 5000;
  span.end_ns = 6000;
  thread.spans.push_back(span);
  thread.messages.push_back({.kind = Kind::joined, .ranks = 2, .begin_ns = 5000, .end_ns = 6000});
  thread.messages.push_back({.kind = Kind::joined, .ranks = 3, .begin_ns = 5000, .end_ns = 6000});
  const std::vector<ThreadTrace> threads{thread};
  const Json all = events(span_events(threads, 1, "host \"n\"", 2500));
  EXPECT_EQ(all.back()["ts"], 7.5);
  EXPECT_EQ(all.back()["dur"], 1.0);
  EXPECT_EQ(all[0]["args"]["name"], "rank 1 (host \"n\")");
  const std::vector<PlacedMessage> messages = placed_messages(threads, 1, 2, 2500);
  ASSERT_EQ(messages.size(), 1u) << "groups of some ranks count others";
  EXPECT_EQ(messages[0].message.begin_ns, 7500);
}

}  // namespace
}  // namespace lockstep
