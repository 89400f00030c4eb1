// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/training_session.h"

#include <algorithm>

#include "api/training_call.h"
#include "comm/shared_error.h"
#include "config/params.h"
#include "core/name_list.h"
#include "io/histogram.h"
#include "run/setup/run_context.h"
#include "session/monitored_session.h"
#include "session/run_reports.h"
#include "session/run_state.h"
#include "train/trainer.h"

namespace lockstep {

struct TrainingSession::Impl {
  Impl(CommEnvironment& environment, TrainingCall call)
      : ranks(environment), kept(std::move(call)), job(environment, std::move(kept.config), kept.job) {}

  /// Throws if there was nothing to do.
  MonitoredSession& session() {
    if (MonitoredSession* const session = job.session()) return *session;
    throw SharedError(Error(ErrorKind::usage, "the session has no steps, and no variables", "",
                            "There was nothing to do, and finish() says why; or an error has ended it."));
  }
  const VariableStore& variables() { return session().context().variables(); }
  VariableStore& changed_variables() { return *job.context()->model().variables; }
  void require_step(const char* method) {
    if (!stops()) return;
    throw SharedError(Error(ErrorKind::usage, fmt::format("{} is called, and no step follows", method), "",
                            "Ask should_stop() before each step."));
  }
  bool stops() {
    const bool is_there = job.session() != nullptr;
    if (is_there == job.has_ended()) return true;  // nothing to do, or finished; after an error run() throws
    bool stop = false;
    job.run([&](MonitoredSession& session) { stop = !session.begin_loop(); });
    return stop;
  }
  StepResult last() { return session().context().last_step(); }
  template <typename T>
  void histogram(std::string_view name, std::span<const T> numbers) {
    RunReports& reports = session().context().reports();
    if (reports.has_events())
      reports.summary(RunReports::Split::train, session().global_step(),
                      histogram_values(std::string(name), numbers));
  }

  CommEnvironment& ranks;
  TrainingCall kept;
  OpenTrainingJob job;
};

TrainingSession::TrainingSession(CommEnvironment& ranks, ModelFunction model, const InputFunction& input,
                                 RunConfig run, const TrainOptions& options, Params params) {
  Estimator estimator(ranks, std::move(model), std::move(run), std::move(params));
  impl_ = std::make_unique<Impl>(ranks, estimator.training_call(input, options));
}

TrainingSession::TrainingSession(CommEnvironment& ranks, Config config, std::string model_dir,
                                 const TrainOptions& options) {
  Estimator estimator(ranks, std::move(config), std::move(model_dir));
  impl_ = std::make_unique<Impl>(ranks, estimator.training_call(InputFunction(), options));
}

TrainingSession::TrainingSession(TrainingSession&&) noexcept = default;
TrainingSession::~TrainingSession() = default;

bool TrainingSession::should_stop() { return impl_->stops(); }

StepResult TrainingSession::run() {
  impl_->require_step("run()");
  impl_->job.run([](MonitoredSession& session) { session.run_step(); });
  return impl_->last();
}

Gradients& TrainingSession::compute_gradients() {
  impl_->require_step("compute_gradients()");
  Gradients* gradients = nullptr;
  impl_->job.run([&](MonitoredSession& session) { gradients = &session.compute_gradients(); });
  return *gradients;
}

StepResult TrainingSession::apply_gradients(const Gradients& gradients) {
  Trainer& trainer = impl_->session().context().trainer();
  if (!trainer.is_computed() || &gradients != &trainer.gradients())
    throw SharedError(Error(ErrorKind::usage,
                            "apply_gradients() gets gradients that are not those of this step", "",
                            "Pass what compute_gradients() has returned since the last step."));
  impl_->job.run([](MonitoredSession& session) { session.apply_gradients(); });
  return impl_->last();
}

TrainingOutcome TrainingSession::finish() { return impl_->job.finish(); }

void TrainingSession::request_stop(const std::string& reason) {
  impl_->session().context().request_stop(reason);
}
void TrainingSession::stop_for_good(const std::string& reason) {
  impl_->session().context().stop_for_good(reason);
}
void TrainingSession::request_save() { impl_->session().context().request_save(); }

bool TrainingSession::is_chief() const { return impl_->ranks.world().rank() == 0; }
std::int64_t TrainingSession::global_step() const { return impl_->session().global_step(); }

std::optional<std::int64_t> TrainingSession::restored_step() const {
  const std::int64_t step = impl_->session().context().restored_step();
  return step < 0 ? std::nullopt : std::optional(step);
}

std::optional<double> TrainingSession::evaluation(std::string_view metric) const {
  const MetricBoard& board = impl_->session().context().eval_metrics();
  if (const auto entry = board.latest(metric)) return entry->value;
  const std::vector<std::string> known = board.names();
  if (known.empty()) return std::nullopt;
  const std::string near =
      nearest(with_split(metric), std::vector<std::string_view>(known.begin(), known.end()));
  throw Error(ErrorKind::usage, fmt::format("no evaluation gives '{}'", metric), "",
              fmt::format("{}There are: {}.", near.empty() ? "" : fmt::format("Did you mean '{}'? ", near),
                          name_list(known)));
}

NamedVariable TrainingSession::variable(std::string_view name) const {
  const VariableStore& variables = impl_->variables();
  const VariableId id = variables.find(name);
  const Tensor tensor = variables.tensor(id);
  return {variables[id].name, variables[id].shape,
          std::span<const float>(tensor.f32(), static_cast<std::size_t>(tensor.num_elements()))};
}

void TrainingSession::set_variable(std::string_view name, std::span<const float> values) {
  const VariableStore& variables = impl_->variables();
  const Tensor tensor = variables.tensor(variables.find(name));
  if (static_cast<std::int64_t>(values.size()) != tensor.num_elements())
    throw Error(ErrorKind::usage,
                fmt::format("{} has {} values, and is set to {}", name, tensor.num_elements(), values.size()),
                "", "Give all of them, in row-major order.");
  std::ranges::copy(values, tensor.f32());
  impl_->changed_variables().to_device();
}

void TrainingSession::save_variables(const std::string& path, const VariableChoice& choice) {
  impl_->job.run([&](MonitoredSession& session) {
    const SessionParts& parts = session.context().parts();
    const CheckpointHeader header =
        run_header(session.global_step(), session.context().cursor(), parts.shards, parts.seed,
                   resolved_config_text(impl_->job.context()->config()));
    lockstep::save_variables(session.context().control(), parts.variables, header, path, choice);
  });
}

void TrainingSession::restore_variables(const std::string& path, const VariableChoice& choice) {
  impl_->job.run([&](MonitoredSession& session) {
    lockstep::restore_variables(session.context().control(), impl_->changed_variables(), path, choice);
  });
}

void TrainingSession::add_scalar(std::string_view name, double value) {
  HookContext& context = impl_->session().context();
  const RunReports::Value values[] = {{name, value}};
  context.reports().record(RunReports::Split::train, context.global_step(), context.last_step().epoch + 1,
                           values);
}
void TrainingSession::add_histogram(std::string_view name, std::span<const float> numbers) {
  impl_->histogram(name, numbers);
}
void TrainingSession::add_histogram(std::string_view name, std::span<const double> numbers) {
  impl_->histogram(name, numbers);
}

MonitoredSession& TrainingSession::monitored() { return impl_->session(); }
RunContext& TrainingSession::context() {
  impl_->session();
  return *impl_->job.context();
}

TrainingSession monitored_training_session(CommEnvironment& ranks, ModelFunction model,
                                           const InputFunction& input, RunConfig run,
                                           const TrainOptions& options) {
  return {ranks, std::move(model), input, std::move(run), options, Params()};
}

TrainingSession monitored_training_session(CommEnvironment& ranks, ModelFunction model, Input input,
                                           RunConfig run, const TrainOptions& options) {
  const InputFunction samples = [input = std::move(input)] { return input; };
  return {ranks, std::move(model), samples, std::move(run), options, Params()};
}

TrainingSession monitored_training_session(CommEnvironment& ranks, EstimatorSpec model, Input input,
                                           RunConfig run, const TrainOptions& options) {
  const ModelFunction function = [model = std::move(model)](const Features&, const LabelColumns&, Mode,
                                                            const Params&) { return model; };
  return monitored_training_session(ranks, function, std::move(input), std::move(run), options);
}

TrainingSession monitored_training_session(CommEnvironment& ranks, Config config, std::string model_dir,
                                           const TrainOptions& options) {
  return {ranks, std::move(config), std::move(model_dir), options};
}

sections::WarmStart init_from(std::string checkpoint,
                              std::vector<std::pair<std::string, std::string>> names) {
  sections::WarmStart start{.checkpoint = std::move(checkpoint)};
  if (names.empty()) return start;
  Node rename;
  for (const auto& [here, there] : names) set_option(rename, here, there);
  start.rename = OptionValue(std::move(rename));
  return start;
}

}  // namespace lockstep
