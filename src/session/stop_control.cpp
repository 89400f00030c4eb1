// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/stop_control.h"

#include <fmt/format.h>

#include <utility>

#include "comm/share_text.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/shown_text.h"

namespace lockstep {

StopControl::StopControl(bool is_chief, RunReports& reports, RankValues& values)
    : is_chief_(is_chief),
      reports_(reports),
      values_(values),
      severity_slice_(values.declare(1)),
      interruption_slice_(values.declare(1)) {}

/// "the loss is low (hook loss_watch)".
std::string StopControl::with_caller(const std::string& reason) const {
  if (caller_.empty()) return reason;
  if (reason.empty()) return fmt::format("hook {} ended it", shown_text(caller_));
  return fmt::format("{} (hook {})", reason, shown_text(caller_));
}

void StopControl::request_stop(const std::string& reason) {
  if (!stop_requested_ && !stop_) {
    reason_ = with_caller(reason);
    if (is_chief_)
      reports_.note(fmt::format("stopping: {}", reason_));
    else
      log_warning("stopping: {}", reason_);
  }
  stop_requested_ = true;
}

void StopControl::stop_for_good(const std::string& reason) {
  request_stop(reason);
  if (final_reason_.empty()) final_reason_ = with_caller(reason);
}

void StopControl::stop_now(const std::string& reason) {
  if (!stop_) {
    if (!reason.empty() || reason_.empty()) reason_ = with_caller(reason);
    if (is_chief_ && !reason.empty()) reports_.note(fmt::format("stopping: {}", reason_));
  }
  stop_ = true;
}

void StopControl::finish_now(const std::string& reason) {
  if (!stop_) final_reason_ = with_caller(reason);
  stop_now(reason);
}

void StopControl::share_reasons(Communicator& control) {
  const auto first = [&](const std::string& mine, const char* what) -> std::string {
    const std::vector<std::string> all = gather_texts(control, mine, what);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (!all[rank].empty())
        return rank == 0 ? all[rank] : fmt::format("{}, asked for by rank {}", all[rank], rank);
    return {};
  };
  final_reason_ = first(final_reason_, "why the run is finished");
  reason_ = final_reason_.empty() ? first(reason_, "why the loop ended") : final_reason_;
}

void StopControl::interrupt(const InterruptionRequest& request, std::int64_t global_step) {
  interruption_ = request;
  reason_ = interruption_text(request);
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
