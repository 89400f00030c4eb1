// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration that an estimator's functions stand for.
#pragma once

#include <string>

#include "api/estimator_spec.h"
#include "api/input.h"

namespace lockstep {

/// `evaluation`: the model of Mode::evaluate, for evaluations during training; null: there are none.
/// `input`: the samples of the mode; `eval_input` with `evaluation`. Only training has an optimizer. Throws
/// Error(config) if the models differ, or something is missing.
Node estimator_config(const RunConfig& run, Mode mode, const EstimatorSpec& spec,
                      const EstimatorSpec* evaluation, const Input& input, const Input* eval_input);

}  // namespace lockstep
