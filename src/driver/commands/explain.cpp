// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep explain`: what one word of a configuration means.
#include <fmt/format.h>

#include "comm/environment.h"
#include "driver/command_line.h"
#include "driver/commands/commands.h"
#include "reference/explanation.h"

namespace lockstep {

int run_command(const ExplainArguments& arguments) {
  std::string key;
  for (const std::string& word : arguments.words) key += (key.empty() ? "" : " ") + word;
  const std::string text = key.empty() ? explanation_index() : explanation(key);
  if (launcher_rank_hint() == 0) fmt::print("{}", text);
  return 0;
}

}  // namespace lockstep
