// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/estimator/evaluation_job.h"

#include <algorithm>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "driver/setup/run_context.h"
#include "io/event_writer.h"
#include "session/run_state.h"
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
  for (const auto& [name, report] : result.metrics) {
    if (report.value) entries.push_back({name, *report.value});
    for (const MetricTable& table : report.tables)
      entries.push_back({fmt::format("{}/{}", name, table.name), 0, table});
  }
  return entries;
}

/// The chief writes; an event file never ends a command.
void write_events(const EvaluationJob& job, const EvaluationOutcome& outcome) {
  EventWriter writer(fmt::format("{}/eval_{}", job.run_dir, job.name));
  writer.scalar("loss", outcome.global_step, outcome.loss);
  for (const EvaluationOutcome::Entry& entry : outcome.entries)
    if (!entry.table) writer.scalar(entry.name, outcome.global_step, entry.value);
  writer.close();
}

void check_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (!std::ranges::all_of(name, allowed))
    throw Error(ErrorKind::usage, fmt::format("'{}' is no name for an evaluation", name), "",
                "A name has letters, digits, _ and - only.");
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

EvaluationOutcome run_evaluation_job(CommEnvironment& environment, const Config& config,
                                     const EvaluationJob& job) {
  Communicator& world = environment.world();
  shared([&] { check_name(job.name); });
  const FoundCheckpoint found = shared([&] {
    FoundCheckpoint checkpoint = find_checkpoint(world, job.run_dir, job.checkpoint);
    if (!checkpoint.exists())
      throw Error(ErrorKind::checkpoint, "there is no checkpoint to evaluate", job.run_dir,
                  "Train first, or name one with --checkpoint.");
    return checkpoint;
  });
  RunContext context(environment, config, found.header.shards, {.eval = true, .kept_in = job.run_dir});
  shared([&] {
    agree(
        world,
        [&] {
          if (world.rank() == 0) check_vocabulary(job.run_dir, *context.eval_data());
        },
        "comparing the vocabulary");
  });
  EvaluationOutcome outcome{.checkpoint = found.path, .global_step = found.header.global_step};
  outcome.averaged_variables =
      shared([&] { return restore_variables(world, found, *context.model().variables, job.averages); });
  const auto evaluation = shared([&] {
    return std::make_unique<Evaluation>(context.executor_context(), context.control(), *context.eval_data(),
                                        config.evaluation_batch_size(),
                                        bind_metrics(config.eval.metrics, *context.model().heads,
                                                     *context.model().graph, *context.eval_data()));
  });
  context.workers().grow_scratch(evaluation->scratch_bytes());
  const EvaluationResult result = evaluation->run();
  outcome.samples = result.samples;
  outcome.loss = result.loss;
  outcome.entries = entries_of(context.model(), *evaluation, result);
  if (!job.name.empty() && context.is_chief()) write_events(job, outcome);
  return outcome;
}

}  // namespace lockstep
