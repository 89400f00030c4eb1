// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: threads of one process that stop together. Several look for a number; the first that finds it
// asks the others to stop. Then one of them fails, and its error reaches the owner with the thread's name.
//
//   build/coordinator
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

#include <lockstep/services.h>

using namespace lockstep;

/// Steps of the Collatz sequence from n to 1.
int collatz_steps(std::uint64_t n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

int main() {
  constexpr int kThreads = 3, kWanted = 300;
  std::atomic<std::uint64_t> found{0};  // declared before the coordinator, whose destructor joins
  Coordinator coordinator;
  for (int thread = 0; thread < kThreads; ++thread)
    coordinator.start_thread("searcher", [&, thread] {
      for (std::uint64_t n = 1 + static_cast<std::uint64_t>(thread); !coordinator.should_stop();
           n += kThreads)
        if (collatz_steps(n) >= kWanted) {
          found = n;
          coordinator.request_stop();
        }
    });
  if (!coordinator.wait_for_stop(60)) return 1;
  coordinator.join();
  const bool right = collatz_steps(found) >= kWanted;
  std::printf("found a sequence of at least %d steps: %s\n", kWanted, right ? "yes" : "no");

  coordinator.clear_stop();  // for new threads
  // A thread that was started elsewhere passes its exceptions on itself.
  coordinator.register_thread("waiter", std::thread([&] {
                                coordinator.stop_on_exception([&] {
                                  while (!coordinator.wait_for_stop(0.1)) {
                                  }
                                });
                              }));
  coordinator.start_thread("reader", [] { throw Error(ErrorKind::data, "the sensor is broken"); });
  coordinator.start_thread("writer", [&] {
    coordinator.wait_for_stop(60);
    throw Error(ErrorKind::output, "no reader");  // not the first error: join() does not throw it
  });
  try {
    coordinator.wait_for_stop(60);
    coordinator.join();
  } catch (const Error& error) {
    std::printf("%s\n", error.what());  // thread 'reader': the sensor is broken
    std::printf("later errors: %zu\n", coordinator.later_errors().size());
    return right ? 0 : 1;
  }
  return 1;
}
