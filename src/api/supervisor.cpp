// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/supervisor.h"

#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "session/agree_shared.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/hooks/run_directory_hook.h"
#include "session/hooks/signal_hook.h"
#include "session/hooks/status_hook.h"
#include "session/hooks/stop_hooks.h"
#include "session/hooks/summary_hooks.h"
#include "session/hooks/switch_files_hook.h"
#include "train/gradients.h"
#include "train/step_numbers.h"
#include "train/step_sums.h"
#include "train/trainer.h"

namespace lockstep {

/// The services of the program, which begin with each attempt; and what ranks tell each other of their loops.
class Supervisor::Services : public Hook {
 public:
  Services() : Hook("services") {}

  void add(double seconds, std::function<void()> function, TimedServiceOptions options) {
    services_.push_back({seconds, std::move(function), std::move(options)});
    if (coordinator_ != nullptr) start(services_.back());
  }
  void begin(HookContext& context) override {
    rank_ = context.control().rank();
    slice_ = context.rank_values().declare(1);
  }
  void after_create_session(HookContext& context) override {
    coordinator_ = &context.coordinator();
    for (const Service& service : services_) start(service);
  }

  /// With the next exchange: the loop of this rank has ended.
  void say_left(HookContext& context) { context.rank_values().mine(slice_)[0] = 1; }
  /// Of the last exchange.
  int ranks_left(HookContext& context) const {
    int left = 0;
    for (int rank = 0; rank < context.control().size(); ++rank)
      left += context.rank_values().of_rank(slice_, rank)[0] > 0 ? 1 : 0;
    return left;
  }

 private:
  struct Service {
    double seconds;
    std::function<void()> function;
    TimedServiceOptions options;
  };
  void start(const Service& service) {
    TimedServiceOptions options = service.options;
    options.rank = rank_;
    lockstep::loop(*coordinator_, service.seconds, service.function, std::move(options));
  }

  std::vector<Service> services_;
  Coordinator* coordinator_ = nullptr;
  int rank_ = 0;
  RankValues::Slice slice_;
};

namespace {

SharedError some_left() {
  return SharedError(
      Error(ErrorKind::usage, "the training loop has ended on some ranks, and goes on on others", "",
            "All ranks must make the same steps. To end from one rank, call request_stop() and go on until "
            "should_stop() says true."));
}

void make_directory(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed)
    throw Error(ErrorKind::config, fmt::format("the run directory cannot be made: {}", failed.message()),
                path, "Choose another one.");
}

Error described(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known;
  } catch (const std::exception& other) {
    return Error(ErrorKind::bug, other.what());
  } catch (...) {
    return Error(ErrorKind::bug, "an exception of unknown type");
  }
}

}  // namespace

Supervisor::Supervisor(const SupervisedRun& run, Options options)
    : values_(run.values),
      recorder_(run.recorder),
      lock_(run.lock.value_or(nullptr)),
      options_(std::move(options)),
      manager_(values_, options_.session),
      saver_(values_.control.rank() == 0, options_.session.run_dir, options_.saver),
      reports_(
          values_.control.rank() == 0, options_.session.run_dir,
          {.events = options_.save_summaries_seconds > 0, .metrics = options_.save_summaries_seconds > 0}) {
  if (options_.session.run_dir.empty())
    throw SharedError(Error(ErrorKind::usage, "the supervisor has no run directory", "",
                            "Set SessionManagerOptions::run_dir."));
  saver_.set_before_write(reports_.syncer());
  saver_.set_distributed(values_.distributed);
  session_ = std::make_unique<MonitoredSession>(
      SessionParts{.control = values_.control,
                   .trainer = values_.trainer,
                   .variables = values_.variables,
                   .optimizer = values_.optimizer,
                   .reports = reports_,
                   .shards = run.shards,
                   .seed = values_.seed,
                   .accuracy = run.accuracy,
                   .part_accuracy = run.part_accuracy},
      MonitoredSession::Options{.run_dir = options_.session.run_dir,
                                .max_recoveries = options_.max_recoveries,
                                .stop_grace_seconds = options_.stop_grace_seconds},
      [this](HookContext& hooks) { return manager_.create(hooks, saver_); });
  add_hooks(run);
}

// After an error of the program's loop, without managed_session().
Supervisor::~Supervisor() { record_error(1, "the supervised loop ended without stop()"); }

/// The status is complete. All ranks.
int Supervisor::record_end(const InterruptionRequest& interruption) {
  if (recorder_ == nullptr) return exit_code(interruption.kind);
  return recorder_->end(interruption, global_step(), session_->final_reason());
}

/// No effect after record_end(). The status of a run directory that this run has lost is not its own.
void Supervisor::record_error(int code, const std::string& why) {
  if (recorder_ != nullptr && (lock_ == nullptr || lock_->lost().empty())) recorder_->failed(code, why);
}

void Supervisor::add_hooks(const SupervisedRun& run) {
  if (run.lock) session_->add(std::make_unique<RunDirectoryHook>(*run.lock));
  session_->add(std::make_unique<SignalHook>());
  session_->add(std::make_unique<SwitchFilesHook>(options_.session.run_dir));
  if (const double seconds = options_.save_summaries_seconds; seconds > 0) {
    session_->add(std::make_unique<SummarySaverHook>(HookTimer({}, seconds)));
    session_->add(std::make_unique<StepCounterHook>(HookTimer({}, seconds)));
  }
  if (options_.last_step) session_->add(std::make_unique<StopAtStepHook>(*options_.last_step));
  CheckpointTriggers triggers;
  if (options_.save_model_seconds > 0) triggers.every_seconds = options_.save_model_seconds;
  session_->add(std::make_unique<CheckpointSaverHook>(
      saver_, CheckpointSaverHook::Options{.triggers = triggers,
                                           .config_text = run.config_text,
                                           .computed_on = run.computed_on,
                                           .kept = run.kept,
                                           .sync_seconds = run.sync_seconds,
                                           .copy_ways = run.copy_ways}));
  if (recorder_ != nullptr) {
    RunStatus* const status = recorder_->status();
    if (status != nullptr && options_.last_step) status->set_total_steps(*options_.last_step);
    session_->add(std::make_unique<StatusHook>(status, saver_));
  }
  auto services = std::make_unique<Services>();
  services_ = services.get();
  session_->add(std::move(services));
}

void Supervisor::loop(double seconds, std::function<void()> function, TimedServiceOptions options) {
  services_->add(seconds, std::move(function), std::move(options));
}

bool Supervisor::start() {
  agree_shared(values_.control, "the run directory", [&] {
    if (values_.control.rank() == 0) make_directory(options_.session.run_dir);
  });
  if (options_.start.wait_for_checkpoint) {
    interruption_ = manager_.wait_for_checkpoint(options_.start.max_wait_seconds);
    if (interruption_.any()) return false;
  }
  if (!options_.start.checkpoint.empty())
    manager_.set_first(
        shared([&] { return find_checkpoint(values_.control, "", options_.start.checkpoint); }));
  session_->start();
  // A run that is there already makes no step.
  if (options_.last_step && global_step() >= *options_.last_step) session_->context().stop_now();
  return true;
}

int Supervisor::managed_session(FunctionRef<void()> body) {
  try {
    return run(body);
  } catch (const Error& error) {
    record_error(exit_code(error.kind()), error.what());
    throw;
  } catch (const std::exception& error) {
    record_error(1, error.what());
    throw;
  }
}

int Supervisor::run(FunctionRef<void()> body) {
  if (!start()) return record_end(interruption_);
  std::exception_ptr failed;
  try {
    body();
  } catch (const SharedError&) {
    throw;  // the others throw it as well
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed) {
    const Error error = described(failed);
    const bool alone = values_.control.size() == 1;
    if (alone || values_.trainer.sums().ownership() != nullptr || error.kind() == ErrorKind::communication ||
        error.kind() == ErrorKind::device)
      std::rethrow_exception(failed);
    leave(&error);
  } else {
    leave(nullptr);
  }
  return stop();
}

bool Supervisor::should_stop() {
  if (session_->should_stop()) return true;
  const Trainer& trainer = values_.trainer;
  if (in_step_) {
    if (trainer.global_step() == step_) return false;  // no step since the last call
    in_step_ = false;
    if (services_->ranks_left(session_->context()) > 0 && !session_->error_agreed()) throw some_left();
    const StepResult result = last_result();
    if (!session_->end_step(result)) return true;
  }
  if (!session_->begin_step()) return true;
  in_step_ = true;
  step_ = trainer.global_step();
  cursor_ = trainer.cursor();
  return false;
}

/// Of all steps since begin_step().
StepResult Supervisor::last_result() const {
  const Trainer& trainer = values_.trainer;
  StepResult result = trainer.numbers().last();
  Cursor at = cursor_;
  for (std::int64_t step = step_ + 1; step < trainer.global_step(); ++step) {
    result.samples += trainer.plan().batch(at).count;
    const Cursor next = trainer.plan().advance(at);
    result.epoch_ended = result.epoch_ended || next.epoch != at.epoch;
    at = next;
  }
  return result;
}

/// The body of this rank has ended, by itself or with an error. The others are told with the exchange of the
/// step that they may be computing.
void Supervisor::leave(const Error* error) {
  Trainer& trainer = values_.trainer;
  if (trainer.is_computed()) trainer.apply(true);  // the body ended between the halves of a step
  if (should_stop()) {
    // All ranks know that no step follows.
    if (error != nullptr) session_->fail(*error, std::make_exception_ptr(*error));
    return;  // stop() agrees on the error
  }
  compute_for_others(error);
}

void Supervisor::compute_for_others(const Error* error) {
  HookContext& context = session_->context();
  Trainer& trainer = values_.trainer;
  if (values_.control.size() == 1) return context.stop_now();
  if (error != nullptr)
    session_->fail(*error, std::make_exception_ptr(*error));
  else
    services_->say_left(context);
  trainer.compute_gradients();
  trainer.forget_computed();
  if (error != nullptr || session_->error_agreed()) session_->throw_error();
  if (services_->ranks_left(context) < values_.control.size()) throw some_left();
  context.stop_now();
}

int Supervisor::stop() {
  session_->finish();
  reports_.close();
  return record_end(interruption());
}

void Supervisor::request_stop(const std::string& reason) { session_->context().request_stop(reason); }
void Supervisor::request_save() { session_->context().request_save(); }
std::int64_t Supervisor::global_step() const { return values_.trainer.global_step(); }
std::int64_t Supervisor::restored_step() const { return session_->context().restored_step(); }
const InterruptionRequest& Supervisor::interruption() const {
  return interruption_.any() ? interruption_ : session_->interruption();
}
Coordinator& Supervisor::coordinator() { return session_->context().coordinator(); }

}  // namespace lockstep
