// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/rank_times.h"

#include <sys/resource.h>

#include <algorithm>

#include "comm/host_names.h"
#include "core/device.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

constexpr int kValues = 6;

double peak_memory_bytes() {
  struct rusage usage {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? 1024.0 * static_cast<double>(usage.ru_maxrss) : 0;
}

}  // namespace

void RankTimes::begin(RankValues& values, Communicator& control) {
  values_ = &values;
  slice_ = values.declare(kValues);
  hosts_ = host_names(control);
}

void RankTimes::step_begins(const Trainer& trainer) {
  sent_ = measured_;
  const std::span<double> mine = values_->mine(slice_);
  mine[0] = mine_.step_seconds;
  mine[1] = mine_.work_seconds;
  mine[2] = mine_.communication_seconds;
  mine[3] = mine_.input_seconds;
  mine[4] = mine_.peak_memory_bytes;
  mine[5] = mine_.peak_gpu_bytes;
  waited_ = trainer.communication_seconds();
  gathered_ = trainer.input_seconds();
  since_.restart();
}

void RankTimes::exchanged(const Trainer& trainer) {
  known_ = sent_;
  mine_.work_seconds = std::max(0.0, since_.seconds() - (trainer.communication_seconds() - waited_));
}

void RankTimes::step_ended(const Trainer& trainer) {
  mine_.step_seconds = since_.seconds();
  mine_.communication_seconds =
      std::clamp(trainer.communication_seconds() - waited_, 0.0, mine_.step_seconds);
  mine_.input_seconds =
      std::clamp(trainer.input_seconds() - gathered_, 0.0, mine_.step_seconds - mine_.communication_seconds);
  mine_.peak_memory_bytes = peak_memory_bytes();
  const Device& device = trainer.device();
  mine_.peak_gpu_bytes = device.is_host() ? 0 : static_cast<double>(device.peak_bytes());
  measured_ = true;
}

RankTime RankTimes::of_rank(int rank) const {
  const std::span<const double> values = values_->of_rank(slice_, rank);
  return {.step_seconds = values[0],
          .work_seconds = values[1],
          .communication_seconds = values[2],
          .input_seconds = values[3],
          .peak_memory_bytes = values[4],
          .peak_gpu_bytes = values[5]};
}

}  // namespace lockstep
