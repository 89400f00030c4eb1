// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// loop(), a timed service (TensorFlow's LooperThread): a function at a fixed interval during the work,
// without drift. This one reports how far the work is.
//
//   build/looper_thread
#include <atomic>
#include <cstdio>

#include <lockstep/services.h>

using namespace lockstep;

int main() {
  std::atomic<long> done{0};  // declared before the coordinator, whose destructor joins
  Coordinator coordinator;
  const TimedService report = loop(coordinator, 0.05, [&] { std::printf("%ld rounds\n", done.load()); },
                                   {.name = "report", .run_at_start = true});
  // A service may end the work: here after five calls.
  int calls = 0;
  const TimedService limit = loop(coordinator, 0.02,
                                  [&] {
                                    if (++calls == 5) coordinator.request_stop();
                                  },
                                  {.name = "limit"});

  while (!coordinator.should_stop()) ++done;  // the work

  coordinator.join();  // rethrows what a service threw
  std::printf("the limit was called %d times, the report at least once: %s\n", static_cast<int>(limit.runs()),
              report.runs() > 0 ? "yes" : "no");
  return limit.runs() == 5 && report.runs() > 0 ? 0 : 1;
}
