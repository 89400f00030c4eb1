// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: looks at data and writes a configuration that trains on them. What no option says it asks
// on a terminal; without one it takes the defaults.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "comm/environment.h"
#include "core/scalar.h"
#include "core/shown_text.h"
#include "core/sizes.h"
#include "driver/command_line/command.h"
#include "io/atomic_file.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "run/sections/config.h"
#include "tools/new/data_guess.h"
#include "tools/new/new_configuration.h"
#include "tools/new/opened_form.h"

namespace lockstep {

namespace {

/// What is empty is asked for on a terminal.
struct NewArguments {
  std::string data, output;
  std::string features, labels;  ///< a column, dataset or field; empty: guess
  std::string task;              ///< auto, classes or numbers
  std::string header;            ///< auto, yes or no
  std::string size;              ///< small, medium or large
  std::optional<double> held_out;
  std::optional<std::int64_t> epochs;
  bool force = false;
};

namespace fs = std::filesystem;

bool can_ask() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

/// One answer; an empty one is the default. Asks again until `problem` is empty.
template <typename Problem>
std::string ask(const std::string& question, const std::string& otherwise, Problem problem) {
  while (true) {
    print_result("{}{}: ", question, otherwise.empty() ? "" : fmt::format(" [{}]", otherwise));
    std::fflush(stdout);
    std::string answer;
    if (!std::getline(std::cin, answer))
      throw Error(ErrorKind::usage, "the answers ended before the last question", "lockstep new",
                  "Answer the questions, or give options: lockstep new --help");
    while (!answer.empty() && (answer.back() == ' ' || answer.back() == '\r')) answer.pop_back();
    if (answer.empty()) answer = otherwise;
    const std::string wrong = problem(answer);
    if (wrong.empty()) return answer;
    print_result("  {}\n", wrong);
  }
}

bool confirm(const std::string& question, bool otherwise) {
  return ask(question + " (yes, no)", otherwise ? "yes" : "no", [](const std::string& answer) {
           return answer == "yes" || answer == "no" ? "" : "Answer yes or no.";
         }) == "yes";
}

std::string share_problem(const std::string& text) {
  const auto share = parse_real(text);
  return share && *share > 0 && *share < 1 ? "" : "Give a number between 0 and 1, such as 0.2.";
}

/// Fills in what no option gave.
void ask_all(NewArguments& arguments) {
  if (arguments.data.empty())
    arguments.data = ask("1. Where are the data? (a file, or a folder)", "", [](const std::string& path) {
      std::error_code failed;
      return !path.empty() && fs::exists(path, failed) ? std::string() : "There is no such file or folder.";
    });
  if (arguments.task.empty())
    arguments.task =
        ask("2. What are the labels? (auto, classes, numbers)", "auto", [](const std::string& task) {
          return task == "auto" || task == "classes" || task == "numbers"
                     ? ""
                     : "Answer auto, classes or numbers.";
        });
  if (!arguments.held_out)
    arguments.held_out = parse_real(
        ask("3. Which share is for evaluation, if the data have no set of their own?", "0.2", share_problem));
  if (arguments.size.empty())
    arguments.size = ask("4. How large a net? (small, medium, large)", "small", [](const std::string& size) {
      return size == "small" || size == "medium" || size == "large" ? "" : "Answer small, medium or large.";
    });
  if (arguments.output.empty())
    arguments.output = ask("5. Which file is written?", "", [&](const std::string& path) {
      if (!path.ends_with(".yaml") && !path.ends_with(".yml")) return "Give a name that ends with .yaml.";
      std::error_code failed;
      return fs::exists(path, failed) && !arguments.force ? "It exists. Give another name, or use --force."
                                                          : "";
    });
}

/// "digits.yaml" for "data/digits.csv.gz".
std::string default_output(const std::string& data) {
  fs::path path = fs::path(data).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  const std::string name = path.filename().string();
  const std::string stem = name.substr(0, name.find('.'));
  return (stem.empty() ? "new" : stem) + ".yaml";
}

/// The data as the configuration names them: relative to its folder where both are below one that is near.
std::string path_in_configuration(const std::string& data, const std::string& output) {
  if (fs::path(data).is_absolute()) return data;
  const fs::path folder = fs::absolute(output).lexically_normal().parent_path();
  const std::string relative = fs::absolute(data).lexically_normal().lexically_relative(folder).string();
  return relative.starts_with("../../../") ? fs::absolute(data).lexically_normal().string() : relative;
}

NetSize size_of(const std::string& name) {
  return name == "large" ? NetSize::large : name == "medium" ? NetSize::medium : NetSize::small;
}

std::string summary_of(const DataGuess& guess, const NewSamples& form) {
  std::string labels = fmt::format("{} classes", form.classes);
  if (form.classes == 0)
    labels = fmt::format("{} number{}", form.label_columns, form.label_columns == 1 ? "" : "s");
  if (guess.has_many_labels) labels = fmt::format("{} labels, several for a sample", form.label_columns);
  if (guess.is_continuous_text) labels = fmt::format("the next of {} tokens", form.vocabulary);
  if (!guess.predicts.empty()) labels = fmt::format("{}, {}", guess.predicts, labels);
  std::string text = shown_format("{}; {} samples for training, each {}; predicted: {}.", guess.what,
                                  form.samples, form.shape.to_string(), labels);
  for (const std::string& note : guess.notes) text += "\n  " + shown_text(note);
  for (const std::string& assumed : guess.assumed) text += "\n  assumed: " + shown_text(assumed);
  if (form.classes == 0 && form.label_columns > 1 && needs_unit(form))
    text += fmt::format(
        "\n  The labels have mean {:.4g} and deviation {:.4g}; nets learn numbers near 0 and 1 faster. Make "
        "them targets\n  with mean and std: docs/data_samples.md#targets.",
        form.label_mean, form.label_deviation);
  return text;
}

void declare(CommandOptions& options, NewArguments& arguments) {
  options
      .add("DATA", arguments.data,
           "A table (.csv, .tsv), .h5, .nc, .npz, .npy, .jsonl, .tfrecord, .tar or .txt file, or a folder of "
           "IDX "
           "files, of arrays, of images or of texts by class")
      .type_name("");
  options
      .add("--output", arguments.output,
           "The configuration to write; default: NAME.yaml for the data NAME.csv; - for standard output")
      .type_name("FILE")
      .check(not_empty("a path"));
  options
      .add("--features", arguments.features, "The dataset or field that is the input; default: the largest")
      .type_name("NAME");
  options
      .add("--labels", arguments.labels,
           "The column, dataset or field to predict; default: one with a usual name, or the last column")
      .type_name("NAME");
  options.add("--task", arguments.task, "What labels are; default: auto, as they look")
      .type_name("auto|classes|numbers")
      .check(one_of_names({"auto", "classes", "numbers"}));
  options
      .add("--header", arguments.header,
           "The first line of a table names its columns; default: auto, as it looks")
      .type_name("auto|yes|no")
      .check(one_of_names({"auto", "yes", "no"}));
  options.add("--size", arguments.size, "The net; default: small")
      .type_name("small|medium|large")
      .check(one_of_names({"small", "medium", "large"}));
  options
      .add("--held-out", arguments.held_out,
           "Share of the samples for evaluation, where the data have no set for it; default: 0.2")
      .type_name("S")
      .check(number(0.001, 0.999));
  options.add("--epochs", arguments.epochs, "Passes over the training set; default: by its size")
      .type_name("N")
      .check(whole_number(1, 1'000'000'000));
  options.add_flag("--force", arguments.force, "Replace a file that exists");
}

int run(const NewArguments& given) {
  if (launcher_rank_hint() != 0) return 0;
  NewArguments arguments = given;
  if (can_ask()) ask_all(arguments);
  if (arguments.data.empty())
    throw Error(ErrorKind::usage, "new: DATA is missing", "lockstep",
                "Give a file or a folder of data; on a terminal it is asked for. See: lockstep new --help");
  const bool prints = is_standard_output(arguments.output);
  if (arguments.output.empty() || prints) arguments.output = default_output(arguments.data);
  std::error_code failed;
  if (!prints && fs::exists(arguments.output, failed) && !arguments.force)
    throw Error(ErrorKind::config, "the file exists", arguments.output,
                "Give another name with --output, or --force to replace it.");
  const double held_out = arguments.held_out.value_or(0.2);
  DataQuestion question{.path = path_in_configuration(arguments.data, arguments.output),
                        .place = arguments.data,
                        .features = arguments.features,
                        .labels = arguments.labels,
                        .numbers = arguments.task == "numbers",
                        .classes = arguments.task == "classes"};
  if (arguments.header == "yes" || arguments.header == "no") question.header = arguments.header == "yes";
  if (can_ask()) question.confirm = confirm;
  DataGuess guess;
  read_into_memory([&] { return question.place; }, [&] { guess = guess_data(question); });
  if (question.classes && guess.is_measured)
    throw Error(ErrorKind::data, "the labels are no classes: they are not whole numbers from 0, or too many",
                arguments.data, "Give --task numbers to predict numbers, or --labels NAME for other labels.");
  const std::string folder = fs::absolute(arguments.output).lexically_normal().parent_path().string();
  const NewSamples form = opened_form(guess, question, held_out, folder);
  const std::string text = new_configuration(guess, form,
                                             {.held_out = held_out,
                                              .size = size_of(arguments.size),
                                              .epochs = arguments.epochs,
                                              .path = arguments.output});
  if (prints) {
    print_lines(stderr, summary_of(guess, form) + "\n");
    print_as_is(text);
    return 0;
  }
  write_file_atomically(arguments.output, text);
  load_config(arguments.output);  // what is written is good
  print_lines(summary_of(guess, form) + "\n");
  print_result("Written to {0}. Next:\n  lockstep check {0}\n  lockstep train {0}\n", arguments.output);
  return 0;
}

}  // namespace

extern const Command kNewCommand = {
    "new", "Look at data and write a commented configuration that trains; asks five questions on a terminal",
    "lockstep new data/digits.csv.gz --output digits.yaml\nlockstep new photos --size medium",
    call_with<NewArguments, declare, run>};

}  // namespace lockstep
