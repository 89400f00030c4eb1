// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/evaluation_job.h"

#include <algorithm>
#include <map>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/log.h"
#include "io/event_writer.h"
#include "io/metrics_log.h"
#include "run/setup/run_context.h"
#include "session/run_vocabulary.h"
#include "train/evaluation.h"

namespace lockstep {

namespace {

std::vector<EvaluationOutcome::Entry> entries_of(const Model& model, const Evaluation& evaluation,
                                                 const EvaluationResult& result) {
  std::vector<EvaluationOutcome::Entry> entries;
  if (model.accuracy() && !result.has_metric("accuracy")) entries.push_back({"accuracy", result.accuracy});
  for (std::size_t i = 0; i < result.parts.size(); ++i)
    if (const std::string& name = evaluation.part_names()[i]; model.reports(name) && !result.has_metric(name))
      entries.push_back({name, result.parts[i]});
  for (const auto& [name, report, of_metric] : result.metrics) {
    if (report.value) entries.push_back({name, *report.value});
    for (const MetricTable& table : report.tables)
      entries.push_back({fmt::format("{}/{}", name, table.name), 0, table});
  }
  return entries;
}

/// Metrics whose numbers are not in the units of the data.
void warn_of_units(const std::vector<BoundMetric>& metrics) {
  std::map<std::string, std::string> names;  // by problem
  for (const BoundMetric& metric : metrics)
    if (const std::string& problem = metric.units.problem(); !problem.empty())
      names[problem] += (names[problem].empty() ? "" : ", ") + metric.name;
  for (const auto& [problem, of_metrics] : names)
    log_warning("{}: in the units of training, not of the data: {}", of_metrics, problem);
}

}  // namespace

double EvaluationOutcome::value(std::string_view name) const {
  if (name == "loss") return loss;
  std::string known = "loss";
  for (const Entry& entry : entries) {
    if (entry.table) continue;
    if (entry.name == name) return entry.value;
    known += ", " + entry.name;
  }
  throw Error(ErrorKind::usage, fmt::format("the evaluation has no number '{}'", name), "",
              fmt::format("It has {}.", known));
}

EvaluationRun::EvaluationRun(CommEnvironment& environment, const Config& config, const std::string& run_dir,
                             const FoundCheckpoint& first)
    : context_(std::make_unique<RunContext>(environment, config, first.header.shards,
                                            RunNeeds{.eval = true,
                                                     .kept_in = run_dir,
                                                     .kept = first.header.kept,
                                                     .described = true,
                                                     .index_in = run_dir})) {
  shared([&] {
    if (context_->eval_data() == nullptr)
      throw Error(ErrorKind::config, "there is no evaluation set", config.path,
                  "Add `eval:` to section data.");
    agree(
        context_->world(),
        [&] {
          if (context_->is_chief()) check_vocabulary(run_dir, *context_->eval_data());
        },
        "comparing the vocabulary");
    const Config& own = context_->config();
    const Model& model = context_->model();
    std::vector<BoundMetric> metrics =
        bind_metrics(own.eval.metrics, *model.heads, *model.graph, context_->eval_set());
    if (context_->is_chief()) warn_of_units(metrics);
    evaluation_ =
        std::make_unique<Evaluation>(context_->executor_context(), context_->control(), context_->eval_set(),
                                     own.evaluation_batch_size(), std::move(metrics));
  });
  context_->workers().grow_scratch(evaluation_->scratch_bytes());
  shared([&] { context_->check_algorithms(); });
}
EvaluationRun::~EvaluationRun() = default;

EvaluationOutcome EvaluationRun::run(const FoundCheckpoint& checkpoint, bool averages,
                                     const std::vector<PassHookFunction>& functions) {
  EvaluationOutcome outcome{
      .checkpoint = checkpoint.path, .file = checkpoint.file, .global_step = checkpoint.header.global_step};
  outcome.averaged_variables = shared([&] {
    return restore_variables(context_->world(), checkpoint, *context_->model().variables, averages);
  });
  PassHooks hooks(context_->world(), functions, context_->eval_set().num_chosen(),
                  context_->config().evaluation_batch_size());
  hooks.begin();
  hooks.before_batch();
  const EvaluationResult result = evaluation_->run([&] { return hooks.between_batches(); });
  if (result.interruption != 0) hooks.rethrow();
  outcome.samples = result.samples;
  outcome.loss = result.loss;
  outcome.entries = entries_of(context_->model(), *evaluation_, result);
  std::vector<std::string_view> without;
  if (result.lacks("loss")) without.emplace_back("loss");
  for (const EvaluationOutcome::Entry& entry : outcome.entries)
    if (result.lacks(entry.name)) without.push_back(entry.name);
  if (context_->is_chief() && !without.empty())
    log_warning("the evaluation of step {} has {}", outcome.global_step, no_result_text(without));
  hooks.end(&outcome);
  return outcome;
}

void EvaluationFiles::check_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (!name.empty() && std::ranges::all_of(name, allowed)) return;
  throw Error(ErrorKind::usage, fmt::format("'{}' is no name for an evaluation", name), "",
              "A name has letters, digits, _ and - only.");
}

EvaluationFiles::EvaluationFiles(const std::string& run_dir, const std::string& name) {
  const std::string folder = fmt::format("{}/eval_{}", run_dir, name);
  events_ = std::make_unique<EventWriter>(folder);
  metrics_ = std::make_unique<MetricsLog>(folder + "/metrics.jsonl");
}
EvaluationFiles::~EvaluationFiles() = default;

void EvaluationFiles::record(const EvaluationOutcome& outcome) {
  std::vector<std::pair<std::string, double>> values{{"loss", outcome.loss}};
  for (const EvaluationOutcome::Entry& entry : outcome.entries)
    if (!entry.table) values.emplace_back(entry.name, entry.value);
  for (const auto& [name, value] : values) events_->scalar(name, outcome.global_step, value);
  events_->flush();
  metrics_->append(outcome.global_step, 0, "eval", values);
  metrics_->flush();
}

EvaluationOutcome run_evaluation_job(CommEnvironment& environment, const Config& config,
                                     const EvaluationJob& job) {
  Communicator& world = environment.world();
  shared([&] {
    if (!job.name.empty()) EvaluationFiles::check_name(job.name);
  });
  const FoundCheckpoint found = shared([&] {
    FoundCheckpoint checkpoint = open_checkpoint(world, job.run_dir, job.checkpoint);
    if (!checkpoint.exists())
      throw Error(ErrorKind::checkpoint, "there is no checkpoint to evaluate", job.run_dir,
                  "Train first, or name one with --checkpoint.");
    return checkpoint;
  });
  const EvaluationOutcome outcome =
      EvaluationRun(environment, config, job.run_dir, found).run(found, job.averages, job.hooks);
  if (!job.name.empty() && world.rank() == 0) EvaluationFiles(job.run_dir, job.name).record(outcome);
  return outcome;
}

}  // namespace lockstep
