// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/device_communicator.h"

#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/error.h"

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

std::unique_ptr<Communicator> DeviceCommunicator::duplicate(std::string) {
  LOCKSTEP_CHECK(false, "'{}' belongs to one stream and cannot be duplicated", name());
  return nullptr;
}
std::unique_ptr<Communicator> DeviceCommunicator::split_by_host(std::string) {
  LOCKSTEP_CHECK(false, "'{}' belongs to one stream and cannot be split", name());
  return nullptr;
}
void DeviceCommunicator::abort(int code) noexcept { std::_Exit(code); }

void abandon_device_communicators() noexcept {
  const std::lock_guard lock(living().mutex);
  for (DeviceCommunicator* const one : living().all) one->abandon();
}

void register_device_communicator(MakeDeviceCommunicator make) { registered = make; }
MakeDeviceCommunicator device_communicator() { return registered; }

}  // namespace lockstep
