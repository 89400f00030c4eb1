// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/monitored_session.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "comm/flight_recorder.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "session/agree_shared.h"
#include "session/transient_error.h"
#include "train/gradients.h"
#include "train/step_numbers.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

void set_step_phase(std::int64_t step) {
  char text[40];
  *fmt::format_to_n(text, sizeof text - 1, "step {}", step).out = '\0';
  set_phase(text);
}

bool holds_transient(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const TransientError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

MonitoredSession::MonitoredSession(const SessionParts& parts, Options options, Restore restore)
    : options_(std::move(options)),
      restore_(std::move(restore)),
      context_(parts, options_.run_dir, coordinator_),
      hooks_(parts.control, context_.stop_, context_.deferred_),
      coordinator_(options_.stop_grace_seconds) {
  context_.setbacks_.set_limit(options_.max_setbacks);
}

MonitoredSession::~MonitoredSession() = default;

void MonitoredSession::add(std::unique_ptr<Hook> hook) {
  LOCKSTEP_CHECK(!started_, "hook {} is added after the start", hook->name());
  hooks_.add(std::move(hook));
}

void MonitoredSession::start() {
  LOCKSTEP_CHECK(!started_);
  started_ = true;
  context_.rank_times_.begin(context_.rank_values_, context_.control());
  hooks_.call_agreed("begin", [&](Hook& hook) { hook.begin(context_); });
  if (const Hook* const hook = hooks_.deciding())
    context_.trainer().wait_for_gradients(fmt::format("the hook {} decides on updates", hook->name()));
  context_.rank_values_.allocate();
  context_.state_.close();
  create();
}

void MonitoredSession::create(std::optional<Cursor> go_on) {
  const SessionParts& parts = context_.parts();
  set_long_phase("restoring");
  const Setbacks setbacks = context_.setbacks_;
  context_.state_.reset();
  context_.last_step_ = {};
  context_.rank_times_.restart();
  if (context_.begins_again()) {  // hooks start theirs again
    agree_shared(parts.control, "ending services", [&] { coordinator_.join(options_.stop_grace_seconds); });
    coordinator_.clear_stop();
  }
  context_.restored_step_ = restore_(context_);
  if (go_on) {
    context_.setbacks_.went_back(setbacks, global_step());
    parts.trainer.set_position(global_step(), *go_on);
  }
  hooks_.call_agreed("after_create_session", [&](Hook& hook) { hook.after_create_session(context_); });
}

void MonitoredSession::run() {
  while (!should_stop()) run_step();
  finish();
}

bool MonitoredSession::run_step() {
  if (!begin_loop()) return false;
  compute_step(false);
  apply_step();
  return !should_stop();
}

Gradients& MonitoredSession::compute_gradients() {
  compute_step(true);
  return context_.trainer().gradients();
}

bool MonitoredSession::apply_gradients() {
  apply_step();
  return !should_stop();
}

void MonitoredSession::compute_step(bool shows_gradients) {
  begin_step();
  Trainer& trainer = context_.trainer();
  half_ = {.result = shows_gradients ? trainer.compute_gradients().result() : trainer.compute()};
  context_.rank_times_.exchanged(trainer);
  half_.agreement = context_.stop_.agreement();
  if (half_.agreement.severity == StopControl::Severity::error) throw_error();
  half_.failed = half_.agreement.severity == StopControl::Severity::transient_error;
  if (half_.failed) return;
  context_.save_.receive();
  hooks_.call_in_step("before_update", [&](Hook& hook) {
    half_.verdict = std::max(half_.verdict, hook.before_update(context_, half_.result));
  });
}

void MonitoredSession::apply_step() {
  if (half_.failed) return recover();
  Trainer& trainer = context_.trainer();
  if (half_.verdict == Verdict::rollback && !should_stop()) {
    roll_back(half_.result);
  } else {
    const bool updates = half_.verdict == Verdict::update;
    trainer.apply(updates);
    context_.rank_times_.step_ended(trainer);
    if (updates) context_.setbacks_.updated();
    context_.last_step_ = half_.result;
    hooks_.call_in_step("after_run", [&](Hook& hook) { hook.after_run(context_, half_.result); });
  }
  context_.stop_.follow(half_.agreement, global_step());
}

bool MonitoredSession::begin_loop() {
  LOCKSTEP_CHECK(started_, "the session has not been started");
  if (should_stop() || std::exchange(begun_, true)) return !should_stop();
  interrupt_start();
  if (!should_stop()) run_deferred();
  return !should_stop();
}

bool MonitoredSession::begin_step() {
  LOCKSTEP_CHECK(started_ && !should_stop(), "the session has {}",
                 started_ ? "been stopped" : "not been started");
  if (!begin_loop()) return false;
  set_step_phase(global_step() + 1);
  context_.end_feed();
  context_.rank_times_.step_begins(context_.trainer());
  hooks_.call_in_step("before_run", [&](Hook& hook) { hook.before_run(context_); });
  Coordinator::take_turns();
  if (coordinator_.should_stop()) check_services();
  send_values();
  return true;
}

void MonitoredSession::fail(const Error& error, std::exception_ptr what) {
  context_.stop_.keep_error(error, std::move(what), false);
  send_values();
}

bool MonitoredSession::end_step(const StepResult& result) {
  const StopControl::Agreement agreement = context_.stop_.agreement();
  if (!follow_errors(agreement)) return !should_stop();
  context_.save_.receive();
  context_.last_step_ = result;
  hooks_.call_in_step("after_run", [&](Hook& hook) { hook.after_run(context_, result); });
  context_.stop_.follow(agreement, global_step());
  return !should_stop();
}

/// After an exchange: throws the error of a rank. False: the session has begun again.
bool MonitoredSession::follow_errors(const StopControl::Agreement& agreement) {
  if (agreement.severity == StopControl::Severity::error) throw_error();
  if (agreement.severity != StopControl::Severity::transient_error) return true;
  recover();
  return false;
}

void MonitoredSession::finish() {
  LOCKSTEP_CHECK(started_ && !finished_);
  finished_ = true;
  throw_error();
  context_.stop_.share_reasons(context_.control());
  context_.ending_ = true;
  set_long_phase("ending");
  hooks_.call_agreed("end", [&](Hook& hook) { hook.end(context_); });
  throw_error();
  agree_shared(context_.control(), "ending services",
               [&] { coordinator_.join(options_.stop_grace_seconds); });
}

/// The first step may take long: interruptions are agreed on before it.
void MonitoredSession::interrupt_start() {
  const InterruptionRequest request =
      agreed(context_.control(), context_.interruptions().look(), "is the start to be interrupted");
  if (request.any()) context_.stop_.interrupt(request, global_step());
}

/// Runs the calls that the session deferred which wrote the checkpoint.
void MonitoredSession::run_deferred() {
  DeferredCalls& deferred = context_.deferred_;
  if (!deferred.any()) return;
  const DeferredCalls::Method method = deferred.method();
  const std::size_t first = hooks_.first_deferred();
  context_.last_step_ = deferred.result();
  deferred.clear();
  context_.ran_deferred_ = true;
  context_.trainer().numbers().publish(context_.last_step_);
  if (method == DeferredCalls::Method::end)
    context_.stop_now();
  else
    hooks_.call_in_step(
        "after_run", [&](Hook& hook) { hook.after_run(context_, context_.last_step_); }, first);
}

/// A service has asked for a stop, or has failed.
void MonitoredSession::check_services() {
  StopControl& stop = context_.stop_;
  try {
    coordinator_.rethrow_error();
  } catch (const ThreadError& error) {
    stop.keep_error(error, std::current_exception(), holds_transient(error.original()));
    return;
  } catch (const Error& error) {
    stop.keep_error(error, std::current_exception(), is_transient(error));
    return;
  } catch (const std::exception& error) {
    stop.keep_error(Error(ErrorKind::bug, error.what()), std::current_exception(), false);
    return;
  }
  stop.request_stop("a service asks for it");
}

/// Fills what this rank sends with the exchange.
void MonitoredSession::send_values() {
  context_.stop_.send();  // first: it asks the sources of interruptions, and one may request a save
  context_.save_.send();
}

/// If a rank has kept an error, all ranks throw it.
void MonitoredSession::throw_error() {
  agree_shared(context_.control(), "hooks", [&] { context_.stop_.rethrow_error(); });
}

void MonitoredSession::roll_back(const StepResult& result) {
  ++context_.rollbacks_;
  context_.rolled_back_ = true;
  create(result.cursor);
  context_.rolled_back_ = false;
  if (context_.is_chief())
    log_warning("back to {}; training goes on after the samples of step {}, with sample {} of epoch {}",
                context_.restored_step() < 0
                    ? std::string("the initial values, as there is no checkpoint yet")
                    : fmt::format("the checkpoint of step {}", context_.restored_step()),
                result.step, result.cursor.samples_consumed, result.cursor.epoch + 1);
  run_deferred();
}

void MonitoredSession::recover() {
  int& recoveries = context_.recoveries_;
  try {
    throw_error();
  } catch (const SharedError& error) {
    if (++recoveries > options_.max_recoveries) throw;
    if (context_.is_chief())
      log_warning("{}\n  recovery {} of at most {}: back to the last checkpoint", message_of(error),
                  recoveries, options_.max_recoveries);
  }
  context_.stop_.clear_error();
  std::this_thread::sleep_for(std::chrono::duration<double>(
      options_.recovery_wait_seconds * static_cast<double>(1 << std::min(recoveries - 1, 10))));
  create();
  run_deferred();
}

}  // namespace lockstep
