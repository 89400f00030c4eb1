// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep evaluate`: exact metrics over the whole evaluation set, as JSON on standard output.
#include "driver/commands/commands.h"

#include <nlohmann/json.hpp>

#include "comm/agree.h"
#include "driver/commands/print_result.h"
#include "driver/hang_rank.h"
#include "driver/launch.h"
#include "driver/setup/data_trial.h"
#include "driver/setup/run_context.h"
#include "driver/setup/run_directory.h"
#include "session/run_vocabulary.h"
#include "train/evaluation.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

Json list_of(const MetricTable& table) {
  Json numbers = Json::array();
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    if (table.columns > 0 && i % static_cast<std::size_t>(table.columns) == 0)
      numbers.push_back(Json::array());
    (table.columns > 0 ? numbers.back() : numbers).push_back(table.values[i]);
  }
  return numbers;
}

/// One line; NaN and infinities are null.
std::string result_text(const FoundCheckpoint& found, bool averaged, const Model& model,
                        const Evaluation& evaluation, const EvaluationResult& result) {
  Json record;
  record["checkpoint"] = found.path;
  record["global_step"] = found.header.global_step;
  if (averaged) record["averaged_variables"] = true;
  record["samples"] = result.samples;
  record["loss"] = result.loss;
  if (model.accuracy() && !result.has_metric("accuracy")) record["accuracy"] = result.accuracy;
  for (std::size_t i = 0; i < result.parts.size(); ++i)
    if (const std::string& name = evaluation.part_names()[i]; model.reports(name) && !result.has_metric(name))
      record[name] = result.parts[i];
  for (const auto& [name, report] : result.metrics) {
    if (report.value) record[name] = *report.value;
    for (const MetricTable& table : report.tables)
      record[fmt::format("{}/{}", name, table.name)] = list_of(table);
  }
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int run_command(const EvaluateArguments& arguments) {
  RunTarget target = resolve_target(arguments.run);
  try_data_on_chief(target.config);
  const CommOptions limits{hang_timeout_seconds(arguments.hang, target.config.comm.timeout_seconds),
                           target.config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.run.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    shared([&] { hang_rank(arguments.hang, world); });
    const FoundCheckpoint found = shared([&] {
      FoundCheckpoint checkpoint = find_checkpoint(world, target.run_dir, arguments.run.checkpoint);
      if (!checkpoint.exists())
        throw Error(ErrorKind::checkpoint, "there is no checkpoint to evaluate", target.run_dir,
                    "Train first, or name one with --checkpoint.");
      return checkpoint;
    });
    RunContext context(environment, target.config, found.header.shards,
                       {.eval = true, .kept_in = target.run_dir});
    shared([&] {
      agree(
          world,
          [&] {
            if (world.rank() == 0) check_vocabulary(target.run_dir, *context.eval_data());
          },
          "comparing the vocabulary");
    });
    const bool averaged = shared(
        [&] { return restore_variables(world, found, *context.model().variables, arguments.run.averages); });
    const Config& config = context.config();
    const auto evaluation = shared([&] {
      return std::make_unique<Evaluation>(context.executor_context(), context.control(), *context.eval_data(),
                                          config.evaluation_batch_size(),
                                          bind_metrics(config.eval.metrics, *context.model().heads,
                                                       *context.model().graph, *context.eval_data()));
    });
    context.workers().grow_scratch(evaluation->scratch_bytes());
    const EvaluationResult result = evaluation->run();
    if (context.is_chief())
      print_result("{}\n", result_text(found, averaged, context.model(), *evaluation, result));
    return 0;
  });
}

}  // namespace lockstep
