// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A listener receives spans whether or not they are kept. (The hook that writes traces has tests for the kept
// spans.)
#include "core/trace.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

std::vector<std::string> received;

TEST(Trace, ListenerReceivesAllSpans) {
  { const Traced before("phase", "before"); }
  set_trace_listener(
      {[](const char* category, const char* name) { received.push_back(std::string(category) + " " + name); },
       [] { received.emplace_back("end"); }});
  {
    const Traced outer("forward", "conv1");
    const Traced inner("forward", "relu1");
  }
  EXPECT_TRUE(tracing());
  start_trace();
  { const Traced kept("backward", "conv1"); }
  const std::vector<ThreadTrace> threads = stop_trace();
  { const Traced after("update", "adam"); }
  EXPECT_THAT(received, testing::ElementsAre("forward conv1", "forward relu1", "end", "end", "backward conv1",
                                             "end", "update adam", "end"));
  ASSERT_EQ(threads.size(), 1U);
  ASSERT_EQ(threads[0].spans.size(), 1U);
  EXPECT_STREQ(threads[0].spans[0].name.data(), "conv1");
}

}  // namespace
}  // namespace lockstep
