// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/error.h"
#include "core/params.h"
#include "core/scalar.h"
#include "core/version.h"
#include "driver/command_line_checks.h"
#include "driver/command_line_errors.h"

namespace lockstep {

namespace {

// The parser and the variables that it writes into.
struct Parser {
  CLI::App app{"Trains neural networks data-parallel over MPI: the same bits on any number of ranks.",
               "lockstep"};
  CommandLine line;
  std::map<const CLI::App*, Command> commands;
  std::vector<std::string> set, rename;
  std::optional<std::int64_t> steps, threads;
  std::string resume = "auto", prompt;

  Parser() {
    app.set_version_flag("--version", fmt::format("lockstep {}", kVersion), "Print the version");
    app.require_subcommand(1);
    app.footer("Help of a command: lockstep COMMAND --help. Documentation: docs/index.md");
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
    add(Command::info, "info", "Print build, libraries, devices, MPI and threads", "lockstep info");
    add(Command::config_reference, "config-reference",
        "Print the reference of all configuration options as Markdown",
        "lockstep config-reference > docs/config.md");
  }

 private:
  CLI::App* add(Command command, const std::string& name, const std::string& help,
                const std::string& example) {
    return add_to(app, command, name, help, example);
  }
  CLI::App* add_to(CLI::App& parent, Command command, const std::string& name, const std::string& help,
                   const std::string& example) {
    CLI::App* sub = parent.add_subcommand(name, help);
    sub->footer("Example:\n  " + example);
    commands[sub] = command;
    return sub;
  }

  void add_target(CLI::App* sub, const char* name, const char* help) {
    sub->add_option(name, line.target, help)->required()->type_name("");
  }
  void add_overrides(CLI::App* sub) {
    sub->add_option("--set", set, "Override one configuration key, as section.key=value; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    sub->add_option("--threads", threads, "Compute threads per rank")
        ->type_name("N")
        ->check(positive_whole_number());
  }
  void add_checkpoint(CLI::App* sub) {
    sub->add_option("--checkpoint", line.checkpoint, "The checkpoint to use; default: the newest intact one")
        ->type_name("FILE");
  }
  void add_verbosity(CLI::App* sub) {
    sub->add_flag("--quiet", line.quiet, "On standard error warnings and errors only; the log has all");
  }

  void add_hang(CLI::App* sub) {
    sub->add_option("--hang-rank", line.hang_rank,
                    "Park this rank before its first step until a debugger lets it go on")
        ->type_name("N")
        ->check(
            must_be("a rank", [](const std::string& text) { return parse_integer(text).value_or(-1) >= 0; }));
    sub->add_option("--hang-seconds", line.hang_seconds, "How long it waits for the debugger; default: 3600")
        ->type_name("S")
        ->check(must_be("a number above 0",
                        [](const std::string& text) { return parse_real(text).value_or(0) > 0; }));
  }

  void add_train() {
    CLI::App* sub = add(Command::train, "train", "Train, or continue a run that was interrupted",
                        "mpirun -n 2 lockstep train examples/digits.yaml --run-dir runs/digits");
    add_target(sub, "CONFIG", "Configuration file (YAML)");
    sub->add_option("--run-dir", line.run_dir,
                    "Where checkpoints, summaries and the log go; default: runs/<name of CONFIG>")
        ->type_name("DIR");
    add_overrides(sub);
    sub->add_option("--steps", steps,
                    "Train until this global step, in place of train.epochs and train.steps")
        ->type_name("N")
        ->check(positive_whole_number());
    sub->add_option("--resume", resume,
                    "auto: continue if there is a checkpoint; never: refuse if there is one; must: fail if "
                    "there is none")
        ->type_name("auto|never|must")
        ->check(must_be("one of auto, never, must", [](const std::string& text) {
          return text == "auto" || text == "never" || text == "must";
        }));
    sub->add_option(
           "--record", line.record,
           "Keep hashes of all activations and gradients of this step, for `lockstep replay`; may be "
           "repeated")
        ->type_name("N")
        ->check(positive_whole_number())
        ->allow_extra_args(false);
    add_hang(sub);
    add_verbosity(sub);
  }

  void add_evaluate() {
    CLI::App* sub =
        add(Command::evaluate, "evaluate", "Compute exact metrics over the whole evaluation set; prints JSON",
            "lockstep evaluate runs/digits");
    add_target(sub, "RUN_DIR|CONFIG", "Run directory, or a configuration file with --run-dir");
    add_checkpoint(sub);
    add_overrides(sub);
    sub->add_option("--run-dir", line.run_dir,
                    "The run whose checkpoint to use, when a configuration file is given")
        ->type_name("DIR");
    add_hang(sub);
    add_verbosity(sub);
  }

  void add_predict() {
    CLI::App* sub =
        add(Command::predict, "predict",
            "Write the model's outputs for the samples of a file, or go on with a text",
            "lockstep predict runs/digits --input new.csv --output predictions.csv\n"
            "  lockstep predict runs/shakespeare --prompt \"ROMEO:\" --length 500 --temperature 0.8");
    add_target(sub, "RUN_DIR", "Run directory");
    sub->add_option("--input", line.input, "The samples")->type_name("FILE");
    sub->add_option("--output", line.output, "Where the outputs go")->type_name("FILE");
    sub->add_option("--prompt", prompt,
                    "Print this text and what a language model (reader text_windows) makes of it")
        ->type_name("TEXT");
    sub->add_option("--length", line.length, "With --prompt: tokens to add; default: 200")
        ->type_name("N")
        ->check(positive_whole_number());
    sub->add_option(
           "--temperature", line.temperature,
           "With --prompt: below 1 likelier, above 1 bolder; 0: always the likeliest token; default: 1")
        ->type_name("T")
        ->check(not_negative_number());
    sub->add_option("--top-k", line.top_k, "With --prompt: choose among the K likeliest tokens; default: all")
        ->type_name("K")
        ->check(positive_whole_number());
    sub->add_option("--seed", line.seed, "With --prompt: the same seed gives the same text; default: 0")
        ->type_name("S")
        ->check(whole_number());
    add_checkpoint(sub);
    add_overrides(sub);
    add_verbosity(sub);
  }

  void add_vocabulary() {
    CLI::App* sub =
        add(Command::vocabulary, "vocabulary",
            "Write the vocabulary of a configuration's training set: a line per id, word and count",
            "lockstep vocabulary examples/word2vec.yaml --output vocabulary.txt");
    add_target(sub, "CONFIG", "Configuration file (YAML), with a reader of text");
    sub->add_option("--output", line.output, "The file to write")->required()->type_name("FILE");
    add_overrides(sub);
  }

  void add_neighbours() {
    CLI::App* sub = add(Command::neighbours, "neighbours",
                        "Print the words whose vectors are nearest to those of given words",
                        "lockstep neighbours runs/word2vec --words king,love --count 5");
    add_target(sub, "RUN_DIR", "Run directory");
    sub->add_option("--words", line.words, "Words of the vocabulary, with commas between them")
        ->required()
        ->delimiter(',')
        ->type_name("A,B,...")
        ->allow_extra_args(false);
    sub->add_option("--variable", line.variable,
                    "The variable with a row per word; default: the only one that has as many rows as the "
                    "vocabulary has words")
        ->type_name("NAME");
    sub->add_option("--count", line.count, "Neighbours of each word; default: 10")
        ->type_name("N")
        ->check(positive_whole_number());
    sub->add_option("--vocabulary", line.vocabulary, "Default: vocabulary.txt of the run directory")
        ->type_name("FILE");
    sub->add_flag("--json", line.json, "Print JSON");
    add_checkpoint(sub);
  }

  void add_inspect() {
    CLI::App* sub =
        add(Command::inspect, "inspect", "Print what a checkpoint holds: variables, shapes, statistics",
            "lockstep inspect runs/digits --digest");
    add_target(sub, "CHECKPOINT|RUN_DIR", "Checkpoint file, or a run directory for its newest checkpoint");
    sub->add_flag("--digest", line.digest, "Print one hash of all bits instead");
    sub->add_flag("--json", line.json, "Print JSON");
  }

  void add_checkpoint_commands() {
    CLI::App* group =
        app.add_subcommand("checkpoint", "List, verify, compare, average and export checkpoints");
    group->require_subcommand(1);
    group->footer("Help of one of them: lockstep checkpoint list --help");
    const auto output = [&](CLI::App* sub) {
      sub->add_option("--output", line.output, "The file to write")->required()->type_name("FILE");
    };
    const auto json = [&](CLI::App* sub) { sub->add_flag("--json", line.json, "Print JSON"); };

    CLI::App* sub = add_to(*group, Command::checkpoint_list, "list",
                           "Print the checkpoints of a run, and why each is kept",
                           "lockstep checkpoint list runs/digits --verify");
    add_target(sub, "RUN_DIR", "Run directory");
    sub->add_flag("--verify", line.verify, "Read every byte, and say which are intact");
    json(sub);

    sub = add_to(*group, Command::checkpoint_verify, "verify",
                 "Read every byte and name what is damaged; exit code 4 if anything is",
                 "lockstep checkpoint verify runs/digits");
    add_target(sub, "RUN_DIR|FILE", "Run directory, for all its checkpoints, or a checkpoint file");

    sub = add_to(*group, Command::checkpoint_diff, "diff",
                 "Compare two checkpoints tensor by tensor; exit code 1 if they differ",
                 "lockstep checkpoint diff runs/one runs/two");
    for (auto [name, target] : {std::pair("A", &line.target), std::pair("B", &line.other)})
      sub->add_option(name, *target, "Checkpoint file, or run directory for its newest checkpoint")
          ->required()
          ->type_name("");
    json(sub);

    sub = add_to(*group, Command::checkpoint_average, "average",
                 "Write the mean of the variables of several checkpoints of one model",
                 "lockstep checkpoint average runs/digits/checkpoints/step-00000240.h5 "
                 "runs/digits/checkpoints/step-00000480.h5 --output mean.h5");
    sub->add_option("FILE", line.targets, "Checkpoint files, or run directories for their newest checkpoints")
        ->required()
        ->expected(2, 1 << 20)
        ->type_name("");
    output(sub);

    sub = add_to(*group, Command::checkpoint_export, "export",
                 "Write the variables alone, without optimizer and run",
                 "lockstep checkpoint export runs/digits --output weights.h5 --variables 'conv.*'");
    add_target(sub, "RUN_DIR|FILE", "Run directory, for its newest checkpoint, or a checkpoint file");
    output(sub);
    sub->add_option("--variables", line.variables,
                    "Only variables whose whole name this regular expression matches; may be repeated")
        ->type_name("REGEX")
        ->allow_extra_args(false);
    sub->add_option(
           "--rename", rename,
           "Call a variable otherwise: a name, a scope that ends with '/', or a regular expression; may be "
           "repeated")
        ->type_name("FROM=TO")
        ->allow_extra_args(false);
  }

  void add_events() {
    CLI::App* sub = add(Command::events, "events", "Print what an event file holds, one JSON object per line",
                        "lockstep events runs/digits --tag loss");
    add_target(sub, "DIR|FILE", "Event file, or a directory with event files");
    sub->add_option("--tag", line.tag, "Only this tag")->type_name("T");
  }

  void add_replay() {
    CLI::App* sub = add(Command::replay, "replay",
                        "Repeat a recorded step, on any number of ranks, and compare it layer by layer; exit "
                        "code 1 if it differs",
                        "lockstep replay runs/digits --step 100");
    add_target(sub, "RUN_DIR", "Run directory");
    sub->add_option("--step", line.step, "The step: one that was given to lockstep train --record")
        ->required()
        ->type_name("N")
        ->check(positive_whole_number());
    sub->add_flag("--json", line.json, "Print JSON: all rows that differ");
    add_overrides(sub);
    add_hang(sub);
    add_verbosity(sub);
  }

  void add_status() {
    CLI::App* sub = add(Command::status, "status",
                        "Print how far a run is, over all its jobs; from any shell, also while it runs",
                        "lockstep status runs/digits");
    add_target(sub, "RUN_DIR", "Run directory");
    sub->add_flag("--json", line.json, "Print JSON");
  }

  void add_check() {
    CLI::App* sub = add(Command::check, "check",
                        "Validate a configuration; print its layers, memory and bytes per step; runs nothing",
                        "lockstep check examples/digits.yaml --set train.batch_size=64");
    add_target(sub, "CONFIG", "Configuration file (YAML)");
    add_overrides(sub);
  }
};

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  Parser parser;
  CLI::App& app = parser.app;
  const std::vector<std::string> names = command_names(app);
  const std::string commands = fmt::format("Commands: {}. See: lockstep --help", fmt::join(names, ", "));
  if (argc < 2) throw usage_error("a command is missing", commands);
  const std::string first = argv[1];
  CommandLine help;
  if (first == "help") {
    help.text = app.help();
    return help;
  }
  if (!first.starts_with('-') && std::find(names.begin(), names.end(), first) == names.end())
    throw usage_error(fmt::format("unknown command '{}'", first), with_suggestion(first, names, commands));

  if (first.starts_with('-') && first != "-h" && first != "--help" && first != "--version")
    throw usage_error(fmt::format("'{}': a command comes first", first),
                      with_suggestion(first, {"--help", "--version"}, commands));

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App* chosen = chosen_command(app);
    help.text = chosen == nullptr ? app.help() : chosen->help("lockstep" + name_above(*chosen));
    return help;
  } catch (const CLI::CallForVersion& version) {
    help.text = std::string(version.what()) + "\n";
    return help;
  } catch (const CLI::ExtrasError&) {
    const CLI::App* chosen = chosen_command(app);
    if (chosen == nullptr) throw usage_error(fmt::format("'{}' is followed by too much", first), commands);
    throw leftover_error(*chosen);
  } catch (const CLI::ParseError& error) {
    const CLI::App* chosen = chosen_command(app);
    if (chosen == nullptr) throw usage_error(error.what(), commands);
    const std::string name = full_name(*chosen);
    // A misspelt option leaves what it stood for missing too: name the cause.
    if (!chosen->remaining().empty() && chosen->remaining().front().starts_with("--"))
      throw leftover_error(*chosen);
    if (const std::vector<std::string> below = command_names(*chosen); !below.empty())
      throw missing_below(*chosen, below);
    throw usage_error(fmt::format("{}: {}", name, error.what()),
                      fmt::format("See: lockstep {} --help", name));
  }

  CommandLine line = std::move(parser.line);
  line.command = parser.commands.at(chosen_command(app));
  if (line.command == Command::predict) {
    if (chosen_command(app)->count("--prompt") > 0) line.prompt = parser.prompt;
    check_predict(*chosen_command(app), line);
  }
  for (const std::string& rule : parser.rename) {
    const std::size_t equals = rule.find('=');
    if (equals == std::string::npos)
      throw usage_error(fmt::format("--rename {} is not FROM=TO", rule),
                        "See: lockstep checkpoint export --help");
    line.rename.emplace_back(rule.substr(0, equals), rule.substr(equals + 1));
  }
  line.overrides = std::move(parser.set);
  line.resume = parser.resume == "auto"   ? Resume::automatic
                : parser.resume == "must" ? Resume::must
                                          : Resume::never;
  if (parser.steps) {
    line.overrides.push_back(fmt::format("train.steps={}", *parser.steps));
    line.overrides.emplace_back("train.epochs=null");
  }
  if (parser.threads) line.overrides.push_back(fmt::format("threads={}", *parser.threads));
  return line;
}

int launcher_rank_hint() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* text = std::getenv(name))
      if (const auto rank = parse_integer(text)) return static_cast<int>(*rank);
  return 0;
}

}  // namespace lockstep
