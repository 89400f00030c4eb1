// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arguments of `lockstep evaluate`.
#pragma once

#include <string>

#include "driver/commands/ensemble_arguments.h"

namespace lockstep {

struct EvaluateArguments : EnsembleArguments {
  std::string name;  ///< not empty: the results are also in event files, in eval_NAME
  HangArguments hang;
};

}  // namespace lockstep
