// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/error_group.h"

#include <algorithm>

#include "core/message_lines.h"

namespace lockstep {

namespace {

std::string all_messages(const std::vector<Error>& errors, std::size_t total) {
  std::string text;
  for (const Error& error : errors) text += error.what() + std::string("\n  ");
  if (total > errors.size()) text += fmt::format("and {} more\n  ", total - errors.size());
  return text + fmt::format("{} mistakes", total);
}

}  // namespace

ErrorGroup::ErrorGroup(std::vector<Error> errors, std::size_t total)
    : Error(error_of_lines(errors.front().kind(), all_messages(errors, total))),
      errors_(std::move(errors)),
      total_(total) {}

ReportedMistake::ReportedMistake(std::string what) : Error(ErrorKind::config, std::move(what)) {}

void ErrorCollector::add(const Error& error) {
  if (const auto* group = dynamic_cast<const ErrorGroup*>(&error)) {
    const std::vector<Error>& all = group->errors();
    const std::size_t kept = std::min(all.size(), kMostErrors - std::min(kMostErrors, errors_.size()));
    errors_.insert(errors_.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept));
    total_ += group->total();
    return;
  }
  if (!is_full()) errors_.push_back(error);
  ++total_;
}

void ErrorCollector::throw_if_any() const {
  if (total_ == 0) return;
  if (total_ == 1) throw Error(errors_.front());
  throw ErrorGroup(errors_, total_);
}

}  // namespace lockstep
