// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/mailbox.h"

namespace lockstep {

void PollingWait::pause() {
  constexpr int kYields = 200;
  if (++polls_ <= kYields)
    sched_yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(10 * (polls_ - kYields), 100)));
}

}  // namespace lockstep
