// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/monitored_session.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/agree.h"
#include "comm/flight_recorder.h"
#include "comm/shared_error.h"
#include "core/log.h"

namespace lockstep {

namespace {

constexpr int kLevelWord = 0, kSaveWord = 1, kInterruptionWord = 2, kOwnWords = 3;

std::string hook_text(const Hook& hook, const char* method, const std::string& what) {
  return fmt::format("hook {}, {}: {}", hook.name(), method, what);
}

/// Calls one method of one hook; what it throws gets the hook's name.
void call_named(Hook& hook, const char* method, FunctionRef<void(Hook&)> call) {
  try {
    call(hook);
  } catch (const SharedError& error) {
    throw SharedError(
        Error(error.kind(), hook_text(hook, method, error.what_happened()), error.where(), error.advice()));
  } catch (const TransientError& error) {
    throw TransientError(error.kind(), hook_text(hook, method, error.what_happened()), error.where(),
                         error.advice());
  } catch (const Error& error) {
    throw Error(error.kind(), hook_text(hook, method, error.what_happened()), error.where(), error.advice());
  } catch (const std::exception& error) {
    throw Error(ErrorKind::bug, hook_text(hook, method, error.what()));
  } catch (...) {
    throw Error(ErrorKind::bug, hook_text(hook, method, "it threw something that is no exception"));
  }
}

/// What agree() has thrown on all ranks, unless it is the exchange itself that failed.
[[noreturn]] void throw_shared(const Error& error) {
  if (error.kind() == ErrorKind::communication) throw;
  throw SharedError(error);
}

bool is_transient(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const TransientError&) {
    return true;
  } catch (...) {
    return false;
  }
}

void set_step_phase(std::int64_t step) {
  char text[40];
  *fmt::format_to_n(text, sizeof text - 1, "step {}", step).out = '\0';
  set_phase(text);
}

}  // namespace

MonitoredSession::MonitoredSession(SessionParts parts, Options options, Restore restore)
    : parts_(parts),
      options_(std::move(options)),
      restore_(std::move(restore)),
      num_words_(kOwnWords),
      coordinator_(options_.stop_grace_seconds) {}

MonitoredSession::~MonitoredSession() = default;

void MonitoredSession::add(std::unique_ptr<Hook> hook) {
  LOCKSTEP_CHECK(!started_, "hook {} comes after the start", hook->name());
  for (const auto& other : hooks_)
    LOCKSTEP_REQUIRE(other->name() != hook->name(), ErrorKind::config, "there are two hooks with the name {}",
                     hook->name());
  hooks_.push_back(std::move(hook));
}

void MonitoredSession::start() {
  LOCKSTEP_CHECK(!started_);
  started_ = true;
  for (const auto& hook : hooks_)
    call_agreed(*hook, hook->communicates(), "begin", [&](Hook& h) { h.begin(*this); });
  parts_.trainer.exchange().set_rank_values(num_words_);
  state_.push_back({LeftOff::kPath, left_off_.tensor()});
  for (const CheckpointTensor& tensor : state_) {
    const double* values = tensor.tensor.data<double>();
    initial_state_.insert(initial_state_.end(), values, values + tensor.tensor.num_elements());
  }
  create();
}

void MonitoredSession::create() {
  set_long_phase("restoring");
  const double* initial = initial_state_.data();
  for (const CheckpointTensor& tensor : state_) {
    const std::int64_t count = tensor.tensor.num_elements();
    std::copy_n(initial, count, tensor.tensor.data<double>());
    initial += count;
  }
  if (recoveries_ > 0) {  // hooks start theirs anew
    agreed("ending services", [&] { coordinator_.join(options_.stop_grace_seconds); });
    coordinator_.clear_stop();
  }
  restore_(*this);
  if (restored_step_ < 0 && options_.init_fn) {
    agreed("init_fn", [&] { options_.init_fn(parts_.variables); });
    parts_.variables.to_device();
  }
  check_ready();
  for (const auto& hook : hooks_)
    call_agreed(*hook, hook->communicates(), "after_create_session",
                [&](Hook& h) { h.after_create_session(*this); });
}

void MonitoredSession::run() {
  while (!stop_) run_step();
  finish();
}

bool MonitoredSession::run_step() {
  LOCKSTEP_CHECK(started_ && !stop_, "the session has {}", started_ ? "been stopped" : "not been started");
  if (!std::exchange(begun_, true)) {
    agree_interruption();
    if (!stop_) make_up();
    if (stop_) return false;
  }
  set_step_phase(global_step() + 1);
  if (feeding_ != nullptr) {
    parts_.trainer.set_feed({});
    feeding_ = nullptr;
  }
  call_in_step("before_run", [&](Hook& hook) { hook.before_run(*this); });
  if (coordinator_.should_stop()) look_at_services();
  fill_words();
  const StepResult result = parts_.trainer.compute();
  const Level level = agreed_level();
  if (level == failed) throw_pending();
  if (level == transient) {
    recover();
    return !stop_;
  }
  for (int rank = 0; rank < parts_.control.size(); ++rank)
    if (parts_.trainer.exchange().rank_values_of(rank)[kSaveWord] > 0) save_agreed_ = true;
  Verdict verdict = Verdict::update;
  call_in_step("before_update", [&](Hook& hook) {
    if (hook.before_update(*this, result) == Verdict::skip) verdict = Verdict::skip;
  });
  parts_.trainer.apply(verdict == Verdict::update);
  last_result_ = result;
  call_in_step("after_run", [&](Hook& hook) { hook.after_run(*this, result); });
  if (level == stop) stop_ = true;
  if (const InterruptionRequest request = agreed_interruption(); request.any() && !stop_) interrupt(request);
  return !stop_;
}

void MonitoredSession::finish() {
  LOCKSTEP_CHECK(started_ && !finished_);
  finished_ = true;
  throw_pending();
  ending_ = true;
  set_long_phase("ending");
  for (const auto& hook : hooks_)
    call_agreed(*hook, hook->communicates(), "end", [&](Hook& h) { h.end(*this); });
  throw_pending();
  agreed("ending services", [&] { coordinator_.join(options_.stop_grace_seconds); });
}

void MonitoredSession::keep_errors(const Hook& hook, FunctionRef<void()> body) {
  try {
    body();
  } catch (const Error& error) {
    keep_error(error, std::current_exception());
  } catch (const std::exception& error) {
    const Error named(ErrorKind::bug, fmt::format("hook {}: {}", hook.name(), error.what()));
    keep_error(named, std::make_exception_ptr(named));
  }
}

void MonitoredSession::call_agreed(Hook& hook, bool communicates, const char* method, Call call) {
  const auto body = [&] {
    if (calls(hook)) call_named(hook, method, call);
  };
  if (communicates) return body();
  agreed(hook.name().c_str(), body);
}

void MonitoredSession::call_in_step(const char* method, Call call, std::size_t first) {
  for (std::size_t i = first; i < hooks_.size() && !leaving_off_; ++i) {
    const std::unique_ptr<Hook>& hook = hooks_[i];
    if (!calls(*hook)) continue;
    if (hook->communicates()) {
      call_named(*hook, method, call);
      continue;
    }
    try {
      call_named(*hook, method, call);
    } catch (const SharedError&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::communication) throw;  // there is no exchange to tell others with
      keep_error(error, std::current_exception());
    }
  }
}

void MonitoredSession::keep_error(const Error& error, std::exception_ptr what) {
  if (pending_) {
    log_warning("after another error: {}", error.what());
    return;
  }
  pending_ = std::move(what);
  pending_level_ = dynamic_cast<const TransientError*>(&error) != nullptr ? transient : failed;
}

void MonitoredSession::look_at_services() {
  try {
    coordinator_.rethrow_error();
  } catch (const ThreadError& error) {
    const bool first = !pending_;
    keep_error(error, std::current_exception());
    if (first && is_transient(error.original())) pending_level_ = transient;
    return;
  } catch (const Error& error) {
    keep_error(error, std::current_exception());
    return;
  } catch (const std::exception& error) {
    keep_error(Error(ErrorKind::bug, error.what()), std::current_exception());
    return;
  }
  request_stop("a service asks for it");
}

void MonitoredSession::agreed(const char* what, FunctionRef<void()> body) {
  try {
    agree(parts_.control, body, what);
  } catch (const Error& error) {
    throw_shared(error);
  }
}

void MonitoredSession::check_ready() const {
  const std::vector<std::string> unset = parts_.variables.unset();
  if (unset.empty()) return;
  throw SharedError(
      Error(ErrorKind::config, fmt::format("these variables have no values: {}", fmt::join(unset, ", ")), "",
            "They have no initializer: give them values in the session's init_fn, by a warm start, or from a "
            "checkpoint."));
}

void MonitoredSession::fill_words() {
  const std::span<double> words = parts_.trainer.exchange().rank_values();
  words[kLevelWord] = pending_ ? pending_level_ : stop_requested_ ? stop : none;
  words[kInterruptionWord] = interruptions_.look().word();  // a source may request a save
  words[kSaveWord] = std::exchange(save_requested_, false) ? 1 : 0;
}

MonitoredSession::Level MonitoredSession::agreed_level() const {
  double level = none;
  const SmallSum& exchange = parts_.trainer.exchange();
  for (int rank = 0; rank < parts_.control.size(); ++rank)
    level = std::max(level, exchange.rank_values_of(rank)[kLevelWord]);
  return static_cast<Level>(level);
}

InterruptionRequest MonitoredSession::agreed_interruption() const {
  double word = 0;
  const SmallSum& exchange = parts_.trainer.exchange();
  for (int rank = 0; rank < parts_.control.size(); ++rank)
    word = std::max(word, exchange.rank_values_of(rank)[kInterruptionWord]);
  return InterruptionRequest::from_word(word);
}

void MonitoredSession::throw_pending() {
  agreed("hooks", [&] {
    if (pending_) std::rethrow_exception(pending_);
  });
}

void MonitoredSession::recover() {
  try {
    throw_pending();
  } catch (const SharedError& error) {
    if (++recoveries_ > options_.max_recoveries) throw;
    if (is_chief())
      log_warning("{}\n  recovery {} of at most {}: back to the last checkpoint", error.what(), recoveries_,
                  options_.max_recoveries);
  }
  pending_ = nullptr;
  pending_level_ = none;
  std::this_thread::sleep_for(std::chrono::duration<double>(
      options_.recovery_wait_seconds * static_cast<double>(1 << std::min(recoveries_ - 1, 10))));
  create();
  make_up();
}

void MonitoredSession::request_stop(const std::string& reason) {
  if (!stop_requested_ && !stop_) {
    if (is_chief())
      parts_.reports.note(fmt::format("stopping: {}", reason));
    else
      log_warning("stopping: {}", reason);
  }
  stop_requested_ = true;
}

void MonitoredSession::stop_now(const std::string& reason) {
  if (!stop_ && is_chief() && !reason.empty()) parts_.reports.note(fmt::format("stopping: {}", reason));
  stop_ = true;
}

void MonitoredSession::stop_for_good(const std::string& reason) {
  if (!stop_) final_reason_ = reason;
  stop_now(reason);
}

void MonitoredSession::interrupt(const InterruptionRequest& request) {
  interruption_ = request;
  stop_ = true;
  if (is_chief())
    parts_.reports.note(
        fmt::format("stopping after step {}: {}", global_step(), interruption_text(interruption_)));
}

/// Before the first step, which may take long: all ranks.
void MonitoredSession::agree_interruption() {
  const InterruptionRequest request =
      lockstep::agreed(parts_.control, interruptions_.look(), "is the start to be interrupted");
  if (request.any()) interrupt(request);
}

void MonitoredSession::leave_off(const Hook& hook, const InterruptionRequest& interruption) {
  LOCKSTEP_CHECK(interruption.any());
  left_off_.set(ending_ ? LeftOff::Method::end : LeftOff::Method::after_run, hook.name(), last_result_);
  leaving_off_ = !ending_;
  interrupt(interruption);
}

/// What the session that wrote the checkpoint had no time for. All ranks.
void MonitoredSession::make_up() {
  const LeftOff::Method method = left_off_.method();
  if (method == LeftOff::Method::none) return;
  const auto hook =
      std::ranges::find_if(hooks_, [&](const auto& candidate) { return left_off_.is_at(candidate->name()); });
  last_result_ = left_off_.result();
  left_off_.clear();
  made_up_ = true;
  if (method == LeftOff::Method::end)
    stop_ = true;
  else if (hook != hooks_.end())
    call_in_step(
        "after_run", [&](Hook& h) { h.after_run(*this, last_result_); },
        static_cast<std::size_t>(hook - hooks_.begin()));
}

std::span<const CheckpointTensor> MonitoredSession::state(bool left_off) const {
  return std::span(state_).first(state_.size() - (left_off || this->left_off() ? 0 : 1));
}

MonitoredSession::Words MonitoredSession::declare_words(int count) {
  LOCKSTEP_CHECK(count > 0);
  num_words_ += count;
  return {num_words_ - count, count};
}

std::span<double> MonitoredSession::words(Words words) {
  return parts_.trainer.exchange().rank_values().subspan(static_cast<std::size_t>(words.first),
                                                         static_cast<std::size_t>(words.count));
}

std::span<const double> MonitoredSession::words_of(Words words, int rank) const {
  return parts_.trainer.exchange().rank_values_of(rank).subspan(static_cast<std::size_t>(words.first),
                                                                static_cast<std::size_t>(words.count));
}

void MonitoredSession::declare_state(const Hook& hook, const std::string& key, std::span<double> values) {
  LOCKSTEP_CHECK(hook.scope() == HookScope::all_ranks, "hook {} lives on the chief only", hook.name());
  state_.push_back({fmt::format("state/hooks/{}/{}", hook.name(), key),
                    Tensor(values.data(), DType::f64, Shape({static_cast<std::int64_t>(values.size())}))});
}

void MonitoredSession::feed(const Hook& hook, Feed feed) {
  LOCKSTEP_REQUIRE(feeding_ == nullptr, ErrorKind::config, "hooks {} and {} both feed the same step",
                   feeding_->name(), hook.name());
  feeding_ = &hook;
  parts_.trainer.set_feed(std::move(feed));
}

}  // namespace lockstep
