// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: opens the samples of a guess, by their reader, and looks at their shape and labels.
#pragma once

#include <string>

#include "tools/new/data_guess.h"
#include "tools/new/new_configuration.h"

namespace lockstep {

/// Opens both sets with the section that was guessed, relative to `folder`. The guess learns what labels are,
/// and loses what the files do not have. Throws Error(data).
NewSamples opened_form(DataGuess& guess, const DataQuestion& question, double held_out,
                       const std::string& folder);

}  // namespace lockstep
