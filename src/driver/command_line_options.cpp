// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_options.h"

#include <fmt/format.h>

#include <limits>

#include "core/version.h"
#include "driver/command_line_checks.h"
#include "driver/command_line_errors.h"
#include "driver/command_line_parts.h"
#include "reference/documentation.h"

namespace lockstep {

namespace {

// Ranges that no use exceeds. Those of options that the configuration has, too, are the same there.
constexpr std::int64_t kMostSteps = 1'000'000'000'000, kMostThreads = 65536, kMostRanks = 1'000'000;
constexpr std::int64_t kMostTokens = 1'000'000'000, kMostWords = 2'147'483'647;
constexpr double kMostSeconds = 1e9, kHighestTemperature = 1e6;

}  // namespace

CommandLineParser::CommandLineParser()
    : app_("Trains neural networks data-parallel over MPI: the same bits on any number of ranks.",
           "lockstep") {
  app_.set_version_flag("--version", fmt::format("lockstep {}", kVersion), "Print the version");
  app_.require_subcommand(1);
  const std::string documentation = documentation_path();
  app_.footer(fmt::format("Help of a command: lockstep COMMAND --help.{}",
                          documentation.empty() ? "" : " Documentation: " + documentation));
  add_train();
  add_evaluate();
  add_predict();
  add_inspect();
  add_checkpoint_commands();
  add_events();
  add_replay();
  add_check();
  add_data();
  add_convert();
  add_export();
  add_import();
  add_status();
  add_plot();
  add_top();
  add_watch();
  add_experiment();
  add_sweep();
  add_trace();
  add_report();
  add_compare();
  add_vocabulary();
  add_neighbours();
  add_new();
  add_explain();
  add_doctor();
  add_schema();
  add_pages();
  add(app_, "info", "Print build, libraries, devices, MPI and threads", "lockstep info",
      [] { return InfoArguments{}; });
  add(app_, "config-reference", "Print the reference of all configuration options as Markdown",
      "lockstep config-reference > docs/config.md", [this] { return config_reference_; })
      ->add_flag("--header", config_reference_.header, "Print the options as a C++ header instead");
}

CLI::App* CommandLineParser::add(CLI::App& parent, const std::string& name, const std::string& help,
                                 const std::string& example, std::function<CommandLine()> result) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->footer("Example:\n  " + example);
  results_[command] = std::move(result);
  return command;
}

void CommandLineParser::add_overrides(CLI::App* command) {
  command->add_option("--set", set_, "Override one configuration key, as section.key=value; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--threads", threads_, "Compute threads per rank")
      ->type_name("N")
      ->check(whole_number(1, kMostThreads));
}

template <typename Arguments>
std::function<CommandLine()> CommandLineParser::with_overrides(const Arguments& parsed) const {
  return [this, &parsed] {
    Arguments arguments = parsed;
    arguments.overrides = overrides();
    return arguments;
  };
}

std::vector<std::string> CommandLineParser::overrides() const {
  std::vector<std::string> overrides = set_;
  if (steps_) {
    overrides.push_back(fmt::format("train.steps={}", *steps_));
    overrides.emplace_back("train.epochs=null");
  }
  if (threads_) overrides.push_back(fmt::format("threads={}", *threads_));
  return overrides;
}

void CommandLineParser::add_hang(CLI::App* command, HangArguments& hang) {
  command
      ->add_option("--hang-rank", hang.rank,
                   "Hold this rank before its first step until a debugger resumes it")
      ->type_name("N")
      ->check(whole_number(0, kMostRanks));
  command->add_option("--hang-seconds", hang.seconds, "How long it waits for the debugger; default: 3600")
      ->type_name("S")
      ->check(number_above(0, kMostSeconds));
}

void CommandLineParser::add_train() {
  CLI::App* command = add(app_, "train", "Train, or continue a run that was interrupted",
                          "mpirun -n 2 lockstep train examples/digits.yaml --run-dir runs/digits", [this] {
                            TrainArguments arguments = train_;
                            arguments.overrides = overrides();
                            arguments.resume = resume_ == "auto"   ? Resume::automatic
                                               : resume_ == "must" ? Resume::must
                                                                   : Resume::never;
                            return arguments;
                          });
  add_target(command, "CONFIG|RUN_DIR", train_.target,
             "Configuration file (YAML), or a run directory, whose run continues with its own configuration");
  add_run_dir(command, train_.run_dir,
              "Where checkpoints, summaries and the log go; default: runs/<name of CONFIG>");
  add_overrides(command);
  command
      ->add_option("--steps", steps_,
                   "Train until this global step, in place of train.epochs and train.steps")
      ->type_name("N")
      ->check(whole_number(1, kMostSteps));
  command
      ->add_option(
          "--resume", resume_,
          "auto: continue if there is a checkpoint; never: refuse if there is one; must: fail if there "
          "is none")
      ->type_name("auto|never|must")
      ->check(must_be(
          "one of auto, never, must (a run continues with its --run-dir)",
          [](const std::string& text) { return text == "auto" || text == "never" || text == "must"; }));
  command->add_flag("--accept-changes", train_.accept_changes,
                    "Continue a run although its data, or values of its configuration that change the "
                    "result, have changed");
  command
      ->add_option("--record", train_.record,
                   "Keep hashes of all activations and gradients of this step, for `lockstep replay`; may be "
                   "repeated")
      ->type_name("N")
      ->check(whole_number(1, kMostSteps))
      ->allow_extra_args(false);
  add_hang(command, train_.hang);
  add_quiet(command, train_.quiet);
}

void CommandLineParser::add_evaluate() {
  CLI::App* command =
      add(app_, "evaluate", "Compute exact metrics over the whole evaluation set; prints JSON",
          "lockstep evaluate runs/digits\n"
          "  lockstep evaluate runs/a runs/b runs/c",
          [this] {
            EvaluateArguments arguments = evaluate_;
            arguments.run = members_of(evaluate_.run, arguments.more_runs, arguments.more_checkpoints);
            return arguments;
          });
  add_members(command, "RUN_DIR|CONFIG",
              "Run directory, or a configuration file with --run-dir; several are an ensemble, whose "
              "predictions are averaged");
  add_averages(command, evaluate_.run.averages);
  add_overrides(command);
  command
      ->add_option("--name", evaluate_.name,
                   "Write the numbers to event files, too, in eval_NAME of the run directory")
      ->type_name("NAME");
  add_run_dir(command, evaluate_.run.run_dir,
              "The run whose checkpoint to use, when a configuration file is given");
  add_hang(command, evaluate_.hang);
  add_quiet(command, evaluate_.run.quiet);
}

CommandLine CommandLineParser::predict_or_sample(const CLI::App& command) const {
  check_predict(command);
  if (command.count("--prompt") == 0) {
    PredictArguments arguments = predict_;
    arguments.run = members_of(predict_.run, arguments.more_runs, arguments.more_checkpoints);
    for (const std::string& more : arguments.more_runs) check_member(more);
    return arguments;
  }
  SampleArguments arguments = sample_;
  arguments.run = only_member();
  return arguments;
}

RunArguments CommandLineParser::members_of(const RunArguments& parsed, std::vector<std::string>& more_runs,
                                           std::vector<std::string>& more_checkpoints) const {
  RunArguments run = parsed;
  run.target = targets_.front();
  more_runs.assign(targets_.begin() + 1, targets_.end());
  if (!checkpoints_.empty()) {
    run.checkpoint = checkpoints_.front();
    more_checkpoints.assign(checkpoints_.begin() + 1, checkpoints_.end());
  }
  run.overrides = overrides();
  return run;
}

RunArguments CommandLineParser::only_member() const {
  std::vector<std::string> more_runs, more_checkpoints;
  RunArguments run = members_of(predict_.run, more_runs, more_checkpoints);
  if (!more_runs.empty() || !more_checkpoints.empty())
    throw usage_error("predict: --prompt continues a text with one model, and several are given",
                      "Name one run, and at most one checkpoint of it.");
  return run;
}

void CommandLineParser::add_members(CLI::App* command, const char* name, const char* help) {
  command->add_option(name, targets_, help)->required()->type_name("PATH")->check(not_empty("a path"));
  command
      ->add_option("--checkpoint", checkpoints_,
                   "A checkpoint file instead of the newest intact one; several are an ensemble")
      ->type_name("FILE")
      ->check(not_empty("a path"))
      ->allow_extra_args(false);
}

void CommandLineParser::add_predict() {
  CLI::App* command =
      add(app_, "predict", "Write the model's outputs for the samples of a file, or continue a text",
          "lockstep predict runs/digits --input new.csv --output predictions.csv\n"
          "  lockstep predict runs/a runs/b runs/c --input new.npy --output ensemble.h5\n"
          "  lockstep predict runs/digits --input - --layer conv2 --output features.npy < new.csv\n"
          "  lockstep predict runs/shakespeare --prompt \"ROMEO:\" --length 500 --temperature 0.8",
          {});
  results_[command] = [this, command] { return predict_or_sample(*command); };
  add_members(command, "RUN_DIR",
              "Run directory or exported folder; several are an ensemble, whose predictions are averaged");
  command
      ->add_option("--input", predict_.inputs,
                   "The samples: a file, a folder of images, or a pattern in quotes ('part*.csv'); may be "
                   "repeated. Several files are read as one. -: standard input. Data with several inputs: "
                   "NAME=FILE for each")
      ->type_name("FILE")
      ->check(not_empty("a path"))
      ->allow_extra_args(false);
  command
      ->add_option("--output", predict_.output,
                   "Where the outputs go: .csv, .h5, .hdf5 or .npy; - for CSV on standard output")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command
      ->add_option("--input-format", predict_.input_format,
                   "Reader of the samples (csv, npy, hdf5, images, ...); default: by the ending of the file, "
                   "else that of the training data")
      ->type_name("READER")
      ->check(not_empty("a name"));
  command
      ->add_option("--input-option", predict_.input_options,
                   "An option of that reader; may be repeated: --input-option features=test/image")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--layer", predict_.layers,
                   "Write the outputs of this layer instead of predictions; may be repeated")
      ->type_name("NAME")
      ->check(not_empty("a name"))
      ->allow_extra_args(false);
  command->add_flag("--ignore-labels", predict_.ignore_labels,
                    "Do not read the labels of the samples, which .h5 and .hdf5 hold otherwise");
  command->add_flag("--sample-names", predict_.sample_names,
                    "Also write where each sample comes from: the file of an image, or file and line");
  command
      ->add_option("--prompt", sample_.prompt,
                   "Print this text and its continuation by a language model (reader text_windows)")
      ->type_name("TEXT");
  command->add_option("--length", sample_.length, "With --prompt: tokens to add; default: 200")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  command
      ->add_option(
          "--temperature", sample_.temperature,
          "With --prompt: below 1 likelier, above 1 more varied; 0: always the likeliest token; default: 1")
      ->type_name("T")
      ->check(number(0, kHighestTemperature));
  command
      ->add_option("--top-k", sample_.top_k,
                   "With --prompt: choose among the K likeliest tokens; default: all")
      ->type_name("K")
      ->check(whole_number(1, kMostWords));
  command->add_option("--seed", sample_.seed, "With --prompt: the same seed gives the same text; default: 0")
      ->type_name("S")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()));
  add_averages(command, predict_.run.averages);
  add_overrides(command);
  add_quiet(command, predict_.run.quiet);
}

void CommandLineParser::add_vocabulary() {
  CLI::App* command =
      add(app_, "vocabulary",
          "Write the vocabulary of a configuration's training set: a line per id, word and count",
          "lockstep vocabulary examples/word2vec.yaml --output vocabulary.txt", with_overrides(vocabulary_));
  add_target(command, "CONFIG", vocabulary_.config, "Configuration file (YAML), with a reader of text");
  add_output(command, vocabulary_.output);
  add_overrides(command);
}

void CommandLineParser::add_neighbours() {
  CLI::App* command =
      add(app_, "neighbours", "Print the words whose vectors are nearest to those of given words",
          "lockstep neighbours runs/word2vec --words king,love --count 5", [this] { return neighbours_; });
  add_target(command, "RUN_DIR", neighbours_.run_dir, "Run directory");
  command->add_option("--words", neighbours_.words, "Words of the vocabulary, separated by commas")
      ->required()
      ->delimiter(',')
      ->type_name("A,B,...")
      ->allow_extra_args(false);
  command
      ->add_option("--variable", neighbours_.variable,
                   "The variable with a row per word; default: the only one that has as many rows as the "
                   "vocabulary has words")
      ->type_name("NAME")
      ->check(not_empty("a variable"));
  command->add_option("--count", neighbours_.count, "Neighbours of each word; default: 10")
      ->type_name("N")
      ->check(whole_number(1, kMostWords));
  command->add_option("--vocabulary", neighbours_.vocabulary, "Default: vocabulary.txt of the run directory")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  add_json(command, neighbours_.json);
  add_checkpoint(command, neighbours_.checkpoint);
}

void CommandLineParser::add_inspect() {
  CLI::App* command = add(app_, "inspect", "Print what a checkpoint holds: variables, shapes, statistics",
                          "lockstep inspect runs/digits --digest", [this] { return inspect_; });
  add_target(command, "CHECKPOINT|RUN_DIR", inspect_.target,
             "Checkpoint file, or a run directory for its newest checkpoint");
  command->add_flag("--digest", inspect_.digest, "Print one hash of all bits instead");
  add_json(command, inspect_.json);
}

void CommandLineParser::add_events() {
  CLI::App* command = add(app_, "events", "Print what an event file holds, one JSON object per line",
                          "lockstep events runs/digits --tag loss", [this] { return events_; });
  add_target(command, "DIR|FILE", events_.target, "Event file, or a directory with event files");
  command->add_option("--tag", events_.tag, "Only these tags: patterns, separated by commas")
      ->type_name("T")
      ->check(not_empty("a tag"));
  CLI::Option* const format =
      command
          ->add_option("--export", events_.format,
                       "Write a table for other programs: csv (numbers) or jsonl (all kinds); what a resumed "
                       "run has replaced is left out")
          ->type_name("csv|jsonl")
          ->check(must_be("csv or jsonl",
                          [](const std::string& text) { return text == "csv" || text == "jsonl"; }));
  command
      ->add_option("--output", events_.output,
                   "The file that --export writes; - for standard output, the default")
      ->type_name("FILE")
      ->check(not_empty("a path"))
      ->needs(format);
}

void CommandLineParser::add_replay() {
  CLI::App* command =
      add(app_, "replay",
          "Repeat a recorded step, on any number of ranks, and compare it layer by layer; exit "
          "code 1 if it differs",
          "lockstep replay runs/digits --step 100", with_overrides(replay_));
  add_target(command, "RUN_DIR", replay_.run_dir, "Run directory");
  command->add_option("--step", replay_.step, "The step: one that was given to lockstep train --record")
      ->required()
      ->type_name("N")
      ->check(whole_number(1, kMostSteps));
  add_json(command, replay_.json, "Print JSON: all rows that differ");
  add_overrides(command);
  add_hang(command, replay_.hang);
  add_quiet(command, replay_.quiet);
}

void CommandLineParser::add_status() {
  CLI::App* command =
      add(app_, "status", "Print how far a run is, over all its jobs; from any shell, also while it runs",
          "lockstep status runs/digits", [this] { return status_; });
  add_target(command, "RUN_DIR", status_.run_dir, "Run directory");
  add_json(command, status_.json);
}

void CommandLineParser::add_data() {
  CLI::App* command =
      add(app_, "data",
          "Print what the data sets hold, before and after the transforms, how fast they are read, and what "
          "looks wrong",
          "lockstep data examples/digits.yaml --png digits.png", with_overrides(data_));
  add_target(command, "CONFIG", data_.config, "Configuration file (YAML)");
  command
      ->add_option("--samples", data_.samples,
                   "Samples of each set to look at, evenly spread; default: 10000, or 2 GB of them")
      ->type_name("N")
      ->check(whole_number(1, kMostSteps));
  command
      ->add_option("--png", data_.png,
                   "Write pictures of samples: as they are stored, and below them transformed")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command
      ->add_option("--show", data_.show,
                   "Pictures to draw in the terminal; default: 4 in a terminal, else none")
      ->type_name("N")
      ->check(whole_number(0, 16));
  add_json(command, data_.json);
  add_overrides(command);
}

void CommandLineParser::add_check() {
  CLI::App* command =
      add(app_, "check",
          "Check everything that train checks before its first step; print layers, memory and bytes per step",
          "lockstep check examples/digits.yaml --set train.batch_size=64", with_overrides(check_));
  command->add_option("CONFIG", check_.config, "Configuration file (YAML); required")
      ->type_name("")
      ->check(not_empty("a path"));
  command
      ->add_option_function<std::string>(
          "--plot-schedule",
          [this](const std::string& file) {
            check_.plot_schedule = true;
            check_.schedule_svg = file;
          },
          "Draw the learning rate and all other numbers that follow a schedule, in the terminal or as SVG")
      ->type_name("[FILE.svg]")
      ->expected(0, 1);
  command->parse_complete_callback([this] {
    // `check --plot-schedule CONFIG`: the file of the option may be left out.
    if (check_.config.empty() && !check_.schedule_svg.ends_with(".svg"))
      std::swap(check_.config, check_.schedule_svg);
    if (check_.config.empty()) throw CLI::RequiredError("CONFIG");
    if (!check_.schedule_svg.empty() && !check_.schedule_svg.ends_with(".svg"))
      throw CLI::ValidationError("--plot-schedule", "the name of the file must end with .svg");
  });
  command->add_flag("--expand", check_.expand, "Print the layers that blocks and repeats stand for, as YAML");
  add_run_dir(command, check_.run_dir,
              "Also check that the run in this directory can be continued with the configuration");
  add_overrides(command);
}

}  // namespace lockstep
