// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/option_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/error.h"

namespace lockstep {

void refuse_range(const char* what) { throw Error(ErrorKind::bug, what); }

// 1e6 and 1e-12, but 0.001 and 2.5.
std::string Limit::text() const {
  if (is_whole_) return fmt::format("{}", whole_);
  char buffer[32];
  const auto end =
      std::to_chars(std::begin(buffer), std::end(buffer), real_, std::chars_format::scientific).ptr;
  const std::string_view written(buffer, static_cast<std::size_t>(end - buffer));
  const auto e = written.find('e');
  const int exponent = std::atoi(std::string(written.substr(e + 1)).c_str());
  if (exponent > -5 && exponent < 5) return fmt::format("{:g}", real_);
  return fmt::format("{}e{}", written.substr(0, e), exponent);
}

std::vector<std::string_view> OptionRange::choices() const {
  std::vector<std::string_view> all;
  std::string_view rest = choices_;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('|'), rest.size());
    all.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

std::string OptionRange::text() const {
  std::string text = has_choices() ? std::string(choices_) : std::string(words_);
  if (lower_ && upper_)
    text = fmt::format("{}{}, {}{}", lower_->is_included ? '[' : '(', lower_->limit.text(),
                       upper_->limit.text(), upper_->is_included ? ']' : ')');
  else if (lower_)
    text = fmt::format("{} {}", lower_->is_included ? ">=" : ">", lower_->limit.text());
  else if (upper_)
    text = fmt::format("{} {}", upper_->is_included ? "<=" : "<", upper_->limit.text());
  if (!unit_.empty()) text += fmt::format(" {}", unit_);
  if (null_ && words_.empty()) text += text.empty() ? "or null" : " or null";
  if (!note_.empty()) text += fmt::format("; {}", note_);
  if (schedule_) text += ", or a schedule";
  return text;
}

}  // namespace lockstep
