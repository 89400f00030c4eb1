// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep vocabulary`: the words of a training set, as a file. One process, no run.
#include "driver/commands/commands.h"

#include "data/text_info.h"
#include "driver/config/config.h"
#include "io/atomic_file.h"

namespace lockstep {

int run_command(const VocabularyArguments& arguments) {
  const Config config = load_config(arguments.config, arguments.overrides);
  const std::unique_ptr<Dataset> data = open_training_set(config.data, config.base_directory);
  if (data->text() == nullptr)
    throw Error(ErrorKind::config, fmt::format("the reader {} reads no text", config.data.format),
                arguments.config, "A vocabulary comes from text_tsv, text_windows or skip_gram.");
  const Vocabulary& vocabulary = data->text()->vocabulary;
  write_file_atomically(arguments.output, vocabulary.file_text());
  fmt::print("{} words written to {}; {} of the text are unknown\n", vocabulary.size(), arguments.output,
             vocabulary.word(vocabulary.unknown_id()).count);
  return 0;
}

}  // namespace lockstep
