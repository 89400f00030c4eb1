// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict`: its options, and which of them go together.
#include "driver/commands/predict.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000, kMostWords = 2'147'483'647;
constexpr double kHighestTemperature = 1e6;
constexpr const char* kSeeHelp = "See: lockstep predict --help";

/// A further run of an ensemble is a run directory, a checkpoint or a configuration. Another file is one of
/// the inputs: the shell has replaced a pattern of --input.
void check_member(const std::string& path) {
  const std::filesystem::path member(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(member, ignored)) return;
  for (const char* const ending : {".h5", ".hdf5", ".yaml", ".yml"})
    if (member.extension() == ending) return;
  throw usage_error(
      fmt::format("predict: one argument too many: '{}'", path),
      "Repeat --input for each file, or put the pattern in quotes. See: lockstep predict --help");
}

/// Options with --input and with --prompt must not be mixed.
void check_given(const CommandOptions& options) {
  if (options.given("--prompt")) {
    for (const char* name :
         {"--input", "--output", "--ignore-labels", "--sample-names", "--layer", "--input-format",
          "--input-option", "--set-name", "--id-column", "--augmentations"})
      if (options.given(name))
        throw usage_error(fmt::format("predict: {} does not go with --prompt", name), kSeeHelp);
    return;
  }
  for (const char* name : {"--length", "--temperature", "--top-k", "--top-p", "--seed"})
    if (options.given(name)) throw usage_error(fmt::format("predict: {} needs --prompt", name), kSeeHelp);
  if (options.given("--layer") && options.given("--augmentations"))
    throw usage_error("predict: --layer does not go with --augmentations", kSeeHelp);
  if (options.given("--set-name"))
    for (const char* name : {"--input", "--input-format", "--input-option"})
      if (options.given(name))
        throw usage_error(fmt::format("predict: {} does not go with --set-name", name), kSeeHelp);
  for (const char* name : {"--input", "--output"})
    if (!options.given(name) && !(name == std::string_view("--input") && options.given("--set-name")))
      throw usage_error(fmt::format("predict: {} is required (or --prompt, to go on with a text)", name),
                        kSeeHelp);
}

void declare_input(CommandOptions& options, PredictArguments& arguments) {
  options
      .add("--input", arguments.inputs,
           "The samples: a file, a folder of images, or a pattern in quotes ('part*.csv'); may be "
           "repeated. Several files are read as one. -: standard input. Data with several inputs: "
           "NAME=FILE for each")
      .type_name("FILE")
      .check(not_empty("a path"))
      .one_value_each();
  options
      .add("--set-name", arguments.set_name,
           "Instead of --input: the evaluation or the training set of the configuration, with its true "
           "labels and the numbers of its samples")
      .type_name("eval|train")
      .check(one_of_names({"eval", "train"}));
  options
      .add(
          "--id-column", arguments.id_column,
          "What is written beside the predictions: a column (csv), dataset (hdf5) or field (jsonl), default: "
          "id, if it is neither a feature nor a label; file or stem, the name of the file without its "
          "folder, or without its ending, too (images, webdataset, text_files)")
      .type_name("NAME")
      .check(not_empty("a name"));
  options
      .add("--output", arguments.output,
           "Where the outputs go: .csv, .h5, .hdf5 or .npy; - for CSV on standard output")
      .type_name("FILE")
      .check(not_empty("a path"));
  options
      .add("--input-format", arguments.input_format,
           "Reader of the samples (csv, npy, hdf5, images, ...); default: by the ending of the file, "
           "else that of the training data")
      .type_name("READER")
      .check(not_empty("a name"));
  options
      .add("--input-option", arguments.input_options,
           "An option of that reader; may be repeated: --input-option features=test/image")
      .type_name("KEY=VALUE")
      .one_value_each();
  options
      .add("--layer", arguments.layers,
           "Write the outputs of this layer instead of predictions; may be repeated")
      .type_name("NAME")
      .check(not_empty("a name"))
      .one_value_each();
  options.add_flag("--ignore-labels", arguments.ignore_labels,
                   "Do not read the labels of the samples, which .h5 and .hdf5 hold otherwise");
  options.add_flag("--sample-names", arguments.sample_names,
                   "Also write where each sample comes from: the file of an image, or file and line");
}

void declare_prompt(CommandOptions& options, SampleArguments& sample) {
  options
      .add("--prompt", sample.prompt,
           "Print this text and its continuation by a language model (reader text_windows)")
      .type_name("TEXT");
  options.add("--length", sample.length, "With --prompt: tokens to add; default: 200")
      .type_name("N")
      .check(whole_number(1, kMostTokens));
  options
      .add("--temperature", sample.choice.temperature,
           "With --prompt: below 1 likelier, above 1 more varied; 0: always the likeliest token; default: 1")
      .type_name("T")
      .check(number(0, kHighestTemperature));
  options
      .add("--top-k", sample.choice.top_k, "With --prompt: choose among the K likeliest tokens; default: all")
      .type_name("K")
      .check(whole_number(1, kMostWords));
  options
      .add("--top-p", sample.choice.top_p,
           "With --prompt: choose among the fewest likeliest tokens that together have the probability P "
           "(nucleus sampling), of the K likeliest with --top-k; default: 1")
      .type_name("P")
      .check(number(0, 1));
  options.add("--seed", sample.choice.seed, "With --prompt: the same seed gives the same text; default: 0")
      .type_name("S")
      .check(whole_number(0, std::numeric_limits<std::int64_t>::max()));
}

void declare(CommandOptions& options, PredictArguments& arguments) {
  add_ensemble(options, arguments, "RUN_DIR",
               "Run directory or exported folder; several are an ensemble, whose predictions are averaged");
  declare_input(options, arguments);
  add_augmentations(options, arguments, "predict");
  declare_prompt(options, arguments.sample);
  add_averages(options, arguments.run.averages);
  add_overrides(options, arguments.run.overrides);
  add_quiet(options, arguments.run.quiet);
  options.after_parsing([&options, &arguments] {
    check_given(options);
    arguments.continues_text = options.given("--prompt");
    arguments.sample.run = arguments.run;
    if (arguments.continues_text && arguments.has_more())
      throw usage_error("predict: --prompt continues a text with one model, and several are given",
                        "Name one run, and at most one checkpoint of it.");
    for (const std::string& more : arguments.more_runs) check_member(more);
  });
}

int run(const PredictArguments& arguments) {
  return arguments.continues_text ? continue_text(arguments.sample) : predict_samples(arguments);
}

}  // namespace

extern const Command kPredictCommand = {
    "predict", "Write the model's outputs for the samples of a file, or continue a text",
    "lockstep predict runs/digits --input new.csv --output predictions.csv\n"
    "lockstep predict runs/digits --set-name eval --output evaluated.csv\n"
    "lockstep predict runs/a runs/b runs/c --input new.npy --output ensemble.h5\n"
    "lockstep predict runs/digits --input - --layer conv2 --output features.npy < new.csv\n"
    "lockstep predict runs/shakespeare --prompt \"ROMEO:\" --length 500 --temperature 0.8",
    call_with<PredictArguments, declare, run>};

}  // namespace lockstep
