// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/command_vocabulary.h"

#include "data/text_info.h"
#include "driver/config/config.h"
#include "io/atomic_file.h"

namespace lockstep {

int command_vocabulary(const CommandLine& line) {
  const Config config = load_config(line.target, line.overrides);
  const std::unique_ptr<Dataset> data = open_training_set(config.data, config.base_directory);
  if (data->text() == nullptr)
    throw Error(ErrorKind::config, fmt::format("the reader {} reads no text", config.data.format),
                line.target, "A vocabulary comes from text_tsv, text_windows or skip_gram.");
  const Vocabulary& vocabulary = data->text()->vocabulary;
  write_file_atomically(line.output, vocabulary.file_text());
  fmt::print("{} words written to {}; {} of the text are unknown\n", vocabulary.size(), line.output,
             vocabulary.word(vocabulary.unknown_id()).count);
  return 0;
}

}  // namespace lockstep
