// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/fault_step.h"

#include <signal.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <limits>
#include <thread>

#include "comm/device_communicator.h"
#include "core/error.h"

namespace lockstep {

namespace {
constexpr int kExitCode = 9;
constexpr std::uint32_t kFlippedBit = 1U << 12;  // of a mantissa: the value stays finite and about the same
}  // namespace

void fault_in_step(std::int64_t step, Communicator& control) {
  set_fault_step(step);
  if (fault_is("exit")) ::_exit(kExitCode);
  if (fault_is("kill")) (void)::raise(SIGKILL);
  if (fault_is("stop"))
    for (;;) (void)::raise(SIGSTOP);  // mpirun lets a stopped process go on for a moment before it ends it
  if (fault_is("exception")) throw Error(ErrorKind::data, "a fault on purpose: exception");
  if (fault_is("sleep")) std::this_thread::sleep_for(std::chrono::hours(1));
  if (fault_is("lost_gpu_groups")) abandon_device_communicators();
  if (fault_is("extra_collective")) control.barrier("a fault on purpose: an extra collective");
}

void fault_in_gradient(Device& device, const Lane& lane, Data loss_gradient) {
  if (!fault_is("nan_gradient")) return;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  device.synchronize(lane.stream);
  with_type(loss_gradient.type(), [&]<typename T>(T) {
    const T value = from_float<T>(nan);
    device.copy_from_host(loss_gradient.address(), &value, sizeof value);
  });
}

void fault_in_variables(VariableStore& variables) {
  if (!fault_is("flipped_bit")) return;
  float& value = variables.trainable_values().front();
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ kFlippedBit);
  variables.to_device();
}

}  // namespace lockstep
