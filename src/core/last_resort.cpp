// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/last_resort.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

std::mutex mutex;
std::vector<const LastResort*> resorts;

}  // namespace

LastResortScope::LastResortScope(LastResort resort) : resort_(std::move(resort)) {
  const std::lock_guard lock(mutex);
  resorts.push_back(&resort_);
}

LastResortScope::~LastResortScope() {
  const std::lock_guard lock(mutex);
  std::erase(resorts, &resort_);
}

void ask_last_resorts(int code, const std::string& message) {
  std::vector<const LastResort*> now;
  {
    const std::lock_guard lock(mutex);
    now = resorts;
  }
  for (auto resort = now.rbegin(); resort != now.rend(); ++resort)
    if (**resort) (**resort)(code, message);
}

}  // namespace lockstep
