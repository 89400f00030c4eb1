// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The results of evaluations, for the hooks that act on them (early stopping, best checkpoints). The same on
// all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "session/run_names.h"

namespace lockstep {

class MetricBoard {
 public:
  struct Entry {
    std::int64_t step = 0;
    double value = 0;
  };

  /// `name` as in "eval/loss".
  void note(std::string_view name, std::int64_t step, double value) {
    latest_.insert_or_assign(std::string(name), Entry{step, value});
    ++version_;
  }
  /// Grows with each note, so that a reader sees cheaply whether there is a new value.
  std::uint64_t version() const { return version_; }
  /// `name` with or without "eval/".
  std::optional<Entry> latest(std::string_view name) const {
    const auto found = latest_.find(with_split(name));
    return found == latest_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : latest_) names.push_back(name);
    return names;
  }

 private:
  std::map<std::string, Entry, std::less<>> latest_;
  std::uint64_t version_ = 0;
};

}  // namespace lockstep
