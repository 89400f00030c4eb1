// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/interruption.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "comm/communicator.h"
#include "core/run_signals.h"

namespace lockstep {

int exit_code(Interruption interruption) {
  switch (interruption) {
    case Interruption::finished:
      return 0;
    case Interruption::requeue:
      return 75;
    case Interruption::user:
      return 130;
  }
  return 1;
}

InterruptionRequest InterruptionRequest::from_code(double code) {
  const int number = static_cast<int>(code);
  return {static_cast<Interruption>(number / 1000), number % 1000};
}

std::string interruption_text(const InterruptionRequest& request) {
  if (request.reason == static_cast<int>(InterruptionReason::time_limit))
    return "the time of the job is nearly over";
  if (request.reason == static_cast<int>(InterruptionReason::stop_file))
    return "the run directory has a file STOP";
  if (request.reason == static_cast<int>(InterruptionReason::lost_directory))
    return "the run directory is no longer this run's";
  if (request.reason == static_cast<int>(InterruptionReason::pause)) return "the job was to end here";
  if (request.reason == SIGCONT) return "mpirun is ending the run";
  return fmt::format("signal {}", signal_name(request.reason));
}

InterruptionRequest signal_request() {
  const int signal = stop_signal();
  if (signal == 0) return {};
  return {signal == SIGINT ? Interruption::user : Interruption::requeue, signal};
}

InterruptionRequest agreed(Communicator& communicator, const InterruptionRequest& mine, const char* what) {
  const double code = mine.code();
  std::vector<double> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(&code, sizeof code, all.data(), what);
  return InterruptionRequest::from_code(*std::ranges::max_element(all));
}

const InterruptionRequest& InterruptionSources::look() {
  for (const Source& source : sources_)
    if (const InterruptionRequest request = source(); request.code() > found_.code()) found_ = request;
  return found_;
}

}  // namespace lockstep
