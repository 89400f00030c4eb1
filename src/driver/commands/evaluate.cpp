// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep evaluate`: exact metrics over the whole evaluation set, as JSON on standard output.
#include "driver/commands/commands.h"

#include <nlohmann/json.hpp>

#include "comm/shared_error.h"
#include "driver/commands/print_result.h"
#include "driver/estimator/estimator.h"
#include "driver/hang_rank.h"
#include "driver/launch.h"
#include "driver/setup/data_trial.h"
#include "driver/setup/run_directory.h"

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
std::string result_text(const EvaluationOutcome& outcome) {
  Json record;
  record["checkpoint"] = outcome.checkpoint;
  record["global_step"] = outcome.global_step;
  if (outcome.averaged_variables) record["averaged_variables"] = true;
  record["samples"] = outcome.samples;
  record["loss"] = outcome.loss;
  for (const EvaluationOutcome::Entry& entry : outcome.entries)
    if (entry.table)
      record[entry.name] = list_of(*entry.table);
    else
      record[entry.name] = entry.value;
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int run_command(const EvaluateArguments& arguments) {
  RunTarget target = resolve_target(arguments.run);
  try_data_on_chief(target.config);
  const CommOptions limits{hang_timeout_seconds(arguments.hang, target.config.comm.timeout_seconds),
                           target.config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.run.quiet, [&](CommEnvironment& environment) {
    shared([&] { hang_rank(arguments.hang, environment.world()); });
    Estimator estimator(environment, target.config, target.run_dir);
    const EvaluationOutcome outcome = estimator.evaluate(
        {.name = arguments.name, .checkpoint = arguments.run.checkpoint, .averages = arguments.run.averages});
    if (environment.world().rank() == 0) print_result("{}\n", result_text(outcome));
    return 0;
  });
}

}  // namespace lockstep
