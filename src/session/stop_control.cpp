// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/stop_control.h"

#include <fmt/format.h>

#include <utility>

#include "core/log.h"
#include "core/message_lines.h"

namespace lockstep {

StopControl::StopControl(bool is_chief, RunReports& reports, RankValues& values)
    : is_chief_(is_chief),
      reports_(reports),
      values_(values),
      severity_slice_(values.declare(1)),
      interruption_slice_(values.declare(1)) {}

void StopControl::request_stop(const std::string& reason) {
  if (!stop_requested_ && !stop_) {
    if (is_chief_)
      reports_.note(fmt::format("stopping: {}", reason));
    else
      log_warning("stopping: {}", reason);
  }
  stop_requested_ = true;
}

void StopControl::stop_now(const std::string& reason) {
  if (!stop_ && is_chief_ && !reason.empty()) reports_.note(fmt::format("stopping: {}", reason));
  stop_ = true;
}

void StopControl::stop_for_good(const std::string& reason) {
  if (!stop_) final_reason_ = reason;
  stop_now(reason);
}

void StopControl::interrupt(const InterruptionRequest& request, std::int64_t global_step) {
  interruption_ = request;
  stop_ = true;
  if (is_chief_)
    reports_.note(fmt::format("stopping after step {}: {}", global_step, interruption_text(interruption_)));
}

void StopControl::keep_error(const Error& error, std::exception_ptr what, bool transient) {
  if (error_) {
    log_warning("after another error: {}", message_of(error));
    return;
  }
  error_ = std::move(what);
  error_severity_ = transient ? Severity::transient_error : Severity::error;
}

void StopControl::rethrow_error() const {
  if (error_) std::rethrow_exception(error_);
}

void StopControl::clear_error() {
  error_ = nullptr;
  error_severity_ = Severity::none;
}

void StopControl::send() {
  const Severity severity = error_ ? error_severity_ : stop_requested_ ? Severity::stop : Severity::none;
  values_.mine(severity_slice_)[0] = static_cast<double>(severity);
  values_.mine(interruption_slice_)[0] = interruptions_.look().code();
}

StopControl::Agreement StopControl::agreement() const {
  return {static_cast<Severity>(static_cast<int>(values_.largest(severity_slice_))),
          InterruptionRequest::from_code(values_.largest(interruption_slice_))};
}

void StopControl::follow(const Agreement& agreement, std::int64_t global_step) {
  if (agreement.severity == Severity::stop) stop_ = true;
  if (agreement.interruption.any() && !stop_) interrupt(agreement.interruption, global_step);
}

}  // namespace lockstep
