// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_options.h"

#include <fmt/format.h>

#include "core/scalar.h"
#include "core/version.h"
#include "driver/command_line_checks.h"
#include "driver/command_line_errors.h"

namespace lockstep {

namespace {

void add_target(CLI::App* command, const char* name, std::string& target, const char* help) {
  command->add_option(name, target, help)->required()->type_name("");
}
void add_checkpoint(CLI::App* command, std::string& checkpoint) {
  command->add_option("--checkpoint", checkpoint, "The checkpoint to use; default: the newest intact one")
      ->type_name("FILE");
}
void add_quiet(CLI::App* command, bool& quiet) {
  command->add_flag("--quiet", quiet,
                    "Print only warnings and errors on standard error; the log has all messages");
}
void add_output(CLI::App* command, std::string& output) {
  command->add_option("--output", output, "The file to write")->required()->type_name("FILE");
}
void add_json(CLI::App* command, bool& json, const char* help = "Print JSON") {
  command->add_flag("--json", json, help);
}

}  // namespace

CommandLineParser::CommandLineParser()
    : app_("Trains neural networks data-parallel over MPI: the same bits on any number of ranks.",
           "lockstep") {
  app_.set_version_flag("--version", fmt::format("lockstep {}", kVersion), "Print the version");
  app_.require_subcommand(1);
  app_.footer("Help of a command: lockstep COMMAND --help. Documentation: docs/index.md");
  add_train();
  add_evaluate();
  add_predict();
  add_inspect();
  add_checkpoint_commands();
  add_events();
  add_replay();
  add_check();
  add_status();
  add_vocabulary();
  add_neighbours();
  add(app_, "info", "Print build, libraries, devices, MPI and threads", "lockstep info",
      [] { return InfoArguments{}; });
  add(app_, "config-reference", "Print the reference of all configuration options as Markdown",
      "lockstep config-reference > docs/config.md", [] { return ConfigReferenceArguments{}; });
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
      ->check(positive_whole_number());
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
      ->check(
          must_be("a rank", [](const std::string& text) { return parse_integer(text).value_or(-1) >= 0; }));
  command->add_option("--hang-seconds", hang.seconds, "How long it waits for the debugger; default: 3600")
      ->type_name("S")
      ->check(must_be("a number above 0",
                      [](const std::string& text) { return parse_real(text).value_or(0) > 0; }));
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
  add_target(command, "CONFIG", train_.config, "Configuration file (YAML)");
  command
      ->add_option("--run-dir", train_.run_dir,
                   "Where checkpoints, summaries and the log go; default: runs/<name of CONFIG>")
      ->type_name("DIR");
  add_overrides(command);
  command
      ->add_option("--steps", steps_,
                   "Train until this global step, in place of train.epochs and train.steps")
      ->type_name("N")
      ->check(positive_whole_number());
  command
      ->add_option(
          "--resume", resume_,
          "auto: continue if there is a checkpoint; never: refuse if there is one; must: fail if there "
          "is none")
      ->type_name("auto|never|must")
      ->check(must_be("one of auto, never, must", [](const std::string& text) {
        return text == "auto" || text == "never" || text == "must";
      }));
  command
      ->add_option("--record", train_.record,
                   "Keep hashes of all activations and gradients of this step, for `lockstep replay`; may be "
                   "repeated")
      ->type_name("N")
      ->check(positive_whole_number())
      ->allow_extra_args(false);
  add_hang(command, train_.hang);
  add_quiet(command, train_.quiet);
}

void CommandLineParser::add_evaluate() {
  CLI::App* command =
      add(app_, "evaluate", "Compute exact metrics over the whole evaluation set; prints JSON",
          "lockstep evaluate runs/digits", [this] {
            EvaluateArguments arguments = evaluate_;
            arguments.run.overrides = overrides();
            return arguments;
          });
  add_target(command, "RUN_DIR|CONFIG", evaluate_.run.target,
             "Run directory, or a configuration file with --run-dir");
  add_checkpoint(command, evaluate_.run.checkpoint);
  add_overrides(command);
  command
      ->add_option("--run-dir", evaluate_.run.run_dir,
                   "The run whose checkpoint to use, when a configuration file is given")
      ->type_name("DIR");
  add_hang(command, evaluate_.hang);
  add_quiet(command, evaluate_.run.quiet);
}

CommandLine CommandLineParser::predict_or_sample(const CLI::App& command) const {
  check_predict(command);
  if (command.count("--prompt") == 0) {
    PredictArguments arguments = predict_;
    arguments.run.overrides = overrides();
    return arguments;
  }
  SampleArguments arguments = sample_;
  arguments.run = predict_.run;
  arguments.run.overrides = overrides();
  return arguments;
}

void CommandLineParser::add_predict() {
  CLI::App* command =
      add(app_, "predict", "Write the model's outputs for the samples of a file, or continue a text",
          "lockstep predict runs/digits --input new.csv --output predictions.csv\n"
          "  lockstep predict runs/shakespeare --prompt \"ROMEO:\" --length 500 --temperature 0.8",
          {});
  results_[command] = [this, command] { return predict_or_sample(*command); };
  add_target(command, "RUN_DIR", predict_.run.target, "Run directory");
  command->add_option("--input", predict_.input, "The samples")->type_name("FILE");
  command->add_option("--output", predict_.output, "Where the outputs go")->type_name("FILE");
  command
      ->add_option("--prompt", sample_.prompt,
                   "Print this text and its continuation by a language model (reader text_windows)")
      ->type_name("TEXT");
  command->add_option("--length", sample_.length, "With --prompt: tokens to add; default: 200")
      ->type_name("N")
      ->check(positive_whole_number());
  command
      ->add_option(
          "--temperature", sample_.temperature,
          "With --prompt: below 1 likelier, above 1 more varied; 0: always the likeliest token; default: 1")
      ->type_name("T")
      ->check(not_negative_number());
  command
      ->add_option("--top-k", sample_.top_k,
                   "With --prompt: choose among the K likeliest tokens; default: all")
      ->type_name("K")
      ->check(positive_whole_number());
  command->add_option("--seed", sample_.seed, "With --prompt: the same seed gives the same text; default: 0")
      ->type_name("S")
      ->check(whole_number());
  add_checkpoint(command, predict_.run.checkpoint);
  add_overrides(command);
  add_quiet(command, predict_.run.quiet);
}

void CommandLineParser::add_vocabulary() {
  CLI::App* command =
      add(app_, "vocabulary",
          "Write the vocabulary of a configuration's training set: a line per id, word and count",
          "lockstep vocabulary examples/word2vec.yaml --output vocabulary.txt", [this] {
            VocabularyArguments arguments = vocabulary_;
            arguments.overrides = overrides();
            return arguments;
          });
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
      ->type_name("NAME");
  command->add_option("--count", neighbours_.count, "Neighbours of each word; default: 10")
      ->type_name("N")
      ->check(positive_whole_number());
  command->add_option("--vocabulary", neighbours_.vocabulary, "Default: vocabulary.txt of the run directory")
      ->type_name("FILE");
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

std::vector<std::pair<std::string, std::string>> CommandLineParser::renames() const {
  std::vector<std::pair<std::string, std::string>> renames;
  for (const std::string& rule : rename_) {
    const std::size_t equals = rule.find('=');
    if (equals == std::string::npos)
      throw usage_error(fmt::format("--rename {} is not FROM=TO", rule),
                        "See: lockstep checkpoint export --help");
    renames.emplace_back(rule.substr(0, equals), rule.substr(equals + 1));
  }
  return renames;
}

void CommandLineParser::add_checkpoint_commands() {
  CLI::App* group =
      app_.add_subcommand("checkpoint", "List, verify, compare, average and export checkpoints");
  group->require_subcommand(1);
  group->footer("Help of one of them: lockstep checkpoint list --help");

  CLI::App* list = add(*group, "list", "Print the checkpoints of a run, and why each is kept",
                       "lockstep checkpoint list runs/digits --verify", [this] { return list_; });
  add_target(list, "RUN_DIR", list_.run_dir, "Run directory");
  list->add_flag("--verify", list_.verify, "Read every byte, and say which are intact");
  add_json(list, list_.json);

  CLI::App* verify =
      add(*group, "verify", "Read every byte and name what is damaged; exit code 4 if anything is",
          "lockstep checkpoint verify runs/digits", [this] { return verify_; });
  add_target(verify, "RUN_DIR|FILE", verify_.target,
             "Run directory, for all its checkpoints, or a checkpoint file");

  CLI::App* diff = add(*group, "diff", "Compare two checkpoints tensor by tensor; exit code 1 if they differ",
                       "lockstep checkpoint diff runs/one runs/two", [this] { return diff_; });
  add_target(diff, "A", diff_.first, "Checkpoint file, or run directory for its newest checkpoint");
  add_target(diff, "B", diff_.second, "Checkpoint file, or run directory for its newest checkpoint");
  add_json(diff, diff_.json);

  CLI::App* average =
      add(*group, "average", "Write the mean of the variables of several checkpoints of one model",
          "lockstep checkpoint average runs/digits/checkpoints/step-00000240.h5 "
          "runs/digits/checkpoints/step-00000480.h5 --output mean.h5",
          [this] { return average_; });
  average
      ->add_option("FILE", average_.files,
                   "Checkpoint files, or run directories for their newest checkpoints")
      ->required()
      ->expected(2, 1 << 20)
      ->type_name("");
  add_output(average, average_.output);

  CLI::App* extract =
      add(*group, "export", "Write the variables alone, without optimizer and run",
          "lockstep checkpoint export runs/digits --output weights.h5 --variables 'conv.*'", [this] {
            CheckpointExportArguments arguments = export_;
            arguments.rename = renames();
            return arguments;
          });
  add_target(extract, "RUN_DIR|FILE", export_.target,
             "Run directory, for its newest checkpoint, or a checkpoint file");
  add_output(extract, export_.output);
  extract
      ->add_option("--variables", export_.variables,
                   "Only variables whose whole name this regular expression matches; may be repeated")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  extract
      ->add_option(
          "--rename", rename_,
          "Give a variable another name: a name, a scope that ends with '/', or a regular expression; may "
          "be repeated")
      ->type_name("FROM=TO")
      ->allow_extra_args(false);
}

void CommandLineParser::add_events() {
  CLI::App* command = add(app_, "events", "Print what an event file holds, one JSON object per line",
                          "lockstep events runs/digits --tag loss", [this] { return events_; });
  add_target(command, "DIR|FILE", events_.target, "Event file, or a directory with event files");
  command->add_option("--tag", events_.tag, "Only this tag")->type_name("T");
}

void CommandLineParser::add_replay() {
  CLI::App* command =
      add(app_, "replay",
          "Repeat a recorded step, on any number of ranks, and compare it layer by layer; exit "
          "code 1 if it differs",
          "lockstep replay runs/digits --step 100", [this] {
            ReplayArguments arguments = replay_;
            arguments.overrides = overrides();
            return arguments;
          });
  add_target(command, "RUN_DIR", replay_.run_dir, "Run directory");
  command->add_option("--step", replay_.step, "The step: one that was given to lockstep train --record")
      ->required()
      ->type_name("N")
      ->check(positive_whole_number());
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

void CommandLineParser::add_check() {
  CLI::App* command = add(
      app_, "check", "Validate a configuration; print its layers, memory and bytes per step; runs nothing",
      "lockstep check examples/digits.yaml --set train.batch_size=64", [this] {
        CheckArguments arguments = check_;
        arguments.overrides = overrides();
        return arguments;
      });
  add_target(command, "CONFIG", check_.config, "Configuration file (YAML)");
  add_overrides(command);
}

}  // namespace lockstep
