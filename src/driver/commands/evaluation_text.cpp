// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/evaluation_text.h"

#include <fmt/format.h>

#include "io/json.h"

namespace lockstep {

namespace {

Json list_of(const MetricTable& table) {
  Json numbers = Json::array();
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    if (table.columns > 0 && i % static_cast<std::size_t>(table.columns) == 0)
      numbers.push_back(Json::array());
    (table.columns > 0 ? numbers.back() : numbers).push_back(table.values[i]);
  }
  return numbers;
}

}  // namespace

std::string evaluation_text(const EvaluationOutcome& outcome) {
  Json record;
  if (outcome.members.empty()) {
    record["checkpoint"] = outcome.checkpoint;
    record["global_step"] = outcome.global_step;
  } else {
    record["ensemble"] = outcome.members;
  }
  if (outcome.augmentations > 1) record["augmentations"] = outcome.augmentations;
  if (outcome.averaged_variables) record["averaged_variables"] = true;
  record["samples"] = outcome.samples;
  record["loss"] = outcome.loss;
  for (const EvaluationOutcome::Entry& entry : outcome.entries)
    if (entry.table)
      record[entry.name] = list_of(*entry.table);
    else
      record[entry.name] = entry.value;
  return record.dump();
}

}  // namespace lockstep
