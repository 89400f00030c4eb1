// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/device_communicator.h"

#include <mutex>
#include <vector>

namespace lockstep {

namespace {
MakeDeviceCommunicator registered = nullptr;

/// The communicators that exist.
struct Living {
  std::mutex mutex;
  std::vector<DeviceCommunicator*> all;
};
Living& living() {
  static auto* one = new Living;  // outlives static objects
  return *one;
}
}  // namespace

DeviceCommunicator::DeviceCommunicator(int rank, int size, std::string name)
    : Communicator(rank, size, std::move(name)) {
  const std::lock_guard lock(living().mutex);
  living().all.push_back(this);
}

DeviceCommunicator::~DeviceCommunicator() {
  const std::lock_guard lock(living().mutex);
  std::erase(living().all, this);
}

void abandon_device_communicators() noexcept {
  const std::lock_guard lock(living().mutex);
  for (DeviceCommunicator* const one : living().all) one->abandon();
}

void register_device_communicator(MakeDeviceCommunicator make) { registered = make; }
MakeDeviceCommunicator device_communicator() { return registered; }

}  // namespace lockstep
