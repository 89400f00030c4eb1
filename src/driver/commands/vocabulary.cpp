// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep vocabulary`: the words of a training set, as a file. One process, no run.
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/print_result.h"

#include <filesystem>

#include "core/log.h"
#include "data/reader_table.h"
#include "data/text_info.h"
#include "io/output_file.h"
#include "run/sections/config.h"

namespace lockstep {

namespace {

struct VocabularyArguments {
  std::string config, output;
  std::vector<std::string> overrides;
};

/// The files that the command reads: none of them may be written over. Any option that is a text may name
/// one.
std::vector<std::string> inputs_of(const Config& config, const std::string& config_path) {
  std::vector<std::string> inputs{config_path};
  const auto add = [&](const std::string& file) {
    inputs.push_back((std::filesystem::path(config.base_directory) / file).string());
  };
  for (const DataInput* input : sets_of(config.data))
    for (const ParamSpec& option : find_reader(input->format).table) {
      if (!input->train.has(option.name)) continue;
      if (option.type == ParamType::string) add(input->train.string(option.name));
      if (option.type == ParamType::strings)
        for (const std::string& file : input->train.strings(option.name)) add(file);
    }
  return inputs;
}

void declare(CommandOptions& options, VocabularyArguments& arguments) {
  add_target(options, "CONFIG", arguments.config, "Configuration file (YAML), with a reader of text");
  add_output(options, arguments.output);
  add_overrides(options, arguments.overrides);
}

int run(const VocabularyArguments& arguments) {
  const Config config = load_config(arguments.config, arguments.overrides);
  const UsedDataset data = open_training_set(config.data, config.base_directory);
  if (data->text() == nullptr)
    throw Error(ErrorKind::config, fmt::format("the reader {} reads no text", config.data.format),
                arguments.config, "A vocabulary comes from text_tsv, text_windows or skip_gram.");
  const Vocabulary& vocabulary = data->text()->vocabulary;
  if (vocabulary.unknown_id() < 0)
    throw Error(ErrorKind::config, "the vocabulary is that of a tokenizer, which has no counts",
                arguments.config, "Its file is that of the option vocabulary, and tokenizer.json of a run.");
  write_output(arguments.output, vocabulary.file_text(), inputs_of(config, arguments.config));
  const std::int64_t unknown = vocabulary.word(vocabulary.unknown_id()).count;
  if (is_standard_output(arguments.output))
    log_info("{} words; {} of the text are unknown", vocabulary.size(), unknown);
  else
    print_result("{} words written to {}; {} of the text are unknown\n", vocabulary.size(), arguments.output,
                 unknown);
  return 0;
}

}  // namespace

extern const Command kVocabularyCommand = {
    "vocabulary", "Write the vocabulary of a configuration's training set: a line per id, word and count",
    "lockstep vocabulary examples/word2vec.yaml --output vocabulary.txt",
    call_with<VocabularyArguments, declare, run>};

}  // namespace lockstep
