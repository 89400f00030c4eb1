// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line/usage_error.h"

#include <fmt/format.h>

#include "config/params.h"
#include "config/synonyms.h"

namespace lockstep {

Error usage_error(std::string what, std::string advice) {
  return Error(ErrorKind::usage, std::move(what), "lockstep", std::move(advice));
}

std::string with_suggestion(std::string_view word, const std::vector<std::string>& known,
                            const std::string& otherwise) {
  if (const std::string found = advice_for_command_line(word); !found.empty())
    return fmt::format("{} {}", found, otherwise);
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string close = nearest(word, views);
  return close.empty() ? otherwise : fmt::format("Did you mean '{}'? {}", close, otherwise);
}

}  // namespace lockstep
