// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands that help to write a configuration and to start a run.
#include <algorithm>

#include "driver/command_line_checks.h"
#include "driver/command_line_description.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"
#include "reference/completion.h"
#include "reference/man_pages.h"

namespace lockstep {

namespace {

ValueCheck one_of(std::string what, std::vector<std::string> names) {
  return must_be(std::move(what), [names = std::move(names)](const std::string& text) {
    return std::find(names.begin(), names.end(), text) != names.end();
  });
}

}  // namespace

void CommandLineParser::add_new() {
  CLI::App* command =
      add(app_, "new",
          "Look at data and write a commented configuration that trains; asks five questions on a terminal",
          "lockstep new data/digits.csv.gz --output digits.yaml\n"
          "  lockstep new photos --size medium",
          [this] { return new_; });
  command
      ->add_option("DATA", new_.data,
                   "A table (.csv, .tsv), .h5, .npz, .jsonl, .tfrecord, .tar or .txt file, or a folder of "
                   "IDX files, of "
                   "images or of texts by class")
      ->type_name("");
  command
      ->add_option("--output", new_.output,
                   "The configuration to write; default: NAME.yaml for the data NAME.csv")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command
      ->add_option("--features", new_.features,
                   "The dataset or field that is the input; default: the largest")
      ->type_name("NAME");
  command
      ->add_option(
          "--labels", new_.labels,
          "The column, dataset or field to predict; default: one with a usual name, or the last column")
      ->type_name("NAME");
  command->add_option("--task", new_.task, "What labels are; default: auto, as they look")
      ->type_name("auto|classes|numbers")
      ->check(one_of("one of auto, classes, numbers", {"auto", "classes", "numbers"}));
  command->add_option("--size", new_.size, "The net; default: small")
      ->type_name("small|medium|large")
      ->check(one_of("one of small, medium, large", {"small", "medium", "large"}));
  command
      ->add_option("--held-out", new_.held_out,
                   "Share of the samples for evaluation, where the data have no set for it; default: 0.2")
      ->type_name("S")
      ->check(number(0.001, 0.999));
  command->add_option("--epochs", new_.epochs, "Passes over the training set; default: by its size")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  command->add_flag("--force", new_.force, "Replace a file that exists");
}

void CommandLineParser::add_explain() {
  CLI::App* command =
      add(app_, "explain", "Say what an option, a layer, a reader, ... means, with its range and an example",
          "lockstep explain train.batch_size\n"
          "  lockstep explain conv2d.padding\n"
          "  lockstep explain nn.Linear",
          [this] { return explain_; });
  command
      ->add_option(
          "KEY", explain_.words,
          "An option (batch_size, train.batch_size), what has options (conv2d, adam, csv), or a word of "
          "another framework (nn.Linear); without it: a list of all names")
      ->type_name("");
}

void CommandLineParser::add_doctor() {
  CLI::App* command =
      add(app_, "doctor",
          "Check MPI, messages, cores, memory, disk and GPUs, each for at most two seconds, with advice",
          "mpirun -n 2 lockstep doctor --run-dir runs", [this] { return doctor_; });
  command
      ->add_option("--run-dir", doctor_.folder,
                   "A folder of run directories, whose disk is tried; default: the current folder")
      ->type_name("DIR")
      ->check(not_empty("a path"));
  add_json(command, doctor_.json);
}

void CommandLineParser::add_schema() {
  add(app_, "schema", "Print the JSON schema of a configuration, with which editors complete and check it",
      "lockstep schema > lockstep.schema.json", [] { return SchemaArguments{}; });
}

void CommandLineParser::add_pages() {
  CLI::App* page =
      add(app_, "man-page", "Print the manual page lockstep(1), or write it and one of each command",
          "lockstep man-page | man -l -\n"
          "  lockstep man-page --output-dir man1",
          [this] {
            ManPageArguments arguments = man_page_;
            arguments.pages = man_pages(description_of(app_));
            return arguments;
          });
  page->add_option("--output-dir", man_page_.folder, "Write all pages into this folder, which must be there")
      ->type_name("DIR")
      ->check(not_empty("a path"));
  CLI::App* completion = add(
      app_, "completion", "Print the completion of commands, options and configuration keys for a shell",
      "source <(lockstep completion bash)\n"
      "  source <(lockstep completion zsh)\n"
      "  lockstep completion fish | source",
      [this] { return HelpArguments{completion_script(description_of(app_), completion_words(), shell_)}; });
  completion->add_option("SHELL", shell_, "bash, zsh or fish; default: bash")
      ->type_name("bash|zsh|fish")
      ->check(must_be("one of bash, zsh, fish", [](const std::string& text) {
        return text == "bash" || text == "zsh" || text == "fish";
      }));
}

}  // namespace lockstep
