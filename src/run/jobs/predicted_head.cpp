// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/predicted_head.h"

#include <string_view>

#include "model/heads.h"
#include "train/output_units.h"

namespace lockstep {

namespace {

/// Of Loss::predict(). A sigmoid's predictions are its inputs.
std::string_view quantity_of(PredictionKind kind) {
  switch (kind) {
    case PredictionKind::classes:
      return "probability";
    case PredictionKind::labels:
      return "logit";
    case PredictionKind::values:
      return "value";
  }
  return "value";
}

}  // namespace

PredictedHead predicted_head(const Head& head, const std::vector<std::string>& class_names,
                             const OutputUnits& units) {
  const PredictionKind kind = head.loss->predictions();
  PredictedHead described{.name = head.name,
                          .shape = head.shape,
                          .quantity = quantity_of(kind),
                          .has_classes = kind == PredictionKind::classes};
  // The names belong to the data's labels: a head with a table has other ones.
  if (kind != PredictionKind::values && head.table.empty() &&
      static_cast<std::int64_t>(class_names.size()) == described.classes())
    described.class_names = class_names;
  described.value_names = units.names();
  described.as_trained = units.problem();
  return described;
}

}  // namespace lockstep
