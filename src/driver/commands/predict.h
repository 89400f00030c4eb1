// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict`: the outputs of a model for samples, or the continuation of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/commands/ensemble_arguments.h"
#include "tools/predict/token_sampler.h"

namespace lockstep {

/// `predict --prompt`.
struct SampleArguments {
  RunArguments run;
  std::string prompt;
  std::int64_t length = 200;  ///< tokens to add
  TokenChoice choice;
};

struct PredictArguments : EnsembleArguments {
  std::vector<std::string> inputs;  ///< files and patterns of files; - alone: standard input
  std::string set_name;             ///< instead of inputs: "eval" or "train" of the configuration
  std::string id_column;            ///< a column of the input with a name of each sample; empty: `id`
  std::string input_format;         ///< the reader of the input; empty: by its ending, or that of training
  std::vector<std::string> input_options;  ///< KEY=VALUE of that reader
  std::string output;
  std::vector<std::string> layers;  ///< not empty: their outputs instead of predictions
  bool ignore_labels = false;       ///< of the input
  bool sample_names = false;        ///< are written
  bool continues_text = false;      ///< as `sample` says; the members above are not used
  SampleArguments sample;
};

// The two works of the command. Each returns the exit code.
int predict_samples(const PredictArguments& arguments);
int continue_text(const SampleArguments& arguments);

}  // namespace lockstep
