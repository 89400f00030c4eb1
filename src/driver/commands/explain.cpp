// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep explain`: what one word of a configuration means.
#include <fmt/format.h>

#include "comm/environment.h"
#include "driver/command_line/command.h"
#include "reference/explanation.h"

namespace lockstep {

namespace {

struct ExplainArguments {
  std::vector<std::string> words;  ///< empty: list what can be explained
};

void declare(CommandOptions& options, ExplainArguments& arguments) {
  options
      .add("KEY", arguments.words,
           "An option (batch_size, train.batch_size), what has options (conv2d, adam, csv), or a word of "
           "another framework (nn.Linear); without it: a list of all names")
      .type_name("");
}

int run(const ExplainArguments& arguments) {
  std::string key;
  for (const std::string& word : arguments.words) key += (key.empty() ? "" : " ") + word;
  const std::string text = key.empty() ? explanation_index() : explanation(key);
  if (launcher_rank_hint() == 0) fmt::print("{}", text);
  return 0;
}

}  // namespace

extern const Command kExplainCommand = {
    "explain", "Say what an option, a layer, a reader, ... means, with its range and an example",
    "lockstep explain train.batch_size\n"
    "lockstep explain conv2d.padding\n"
    "lockstep explain nn.Linear",
    call_with<ExplainArguments, declare, run>};

}  // namespace lockstep
