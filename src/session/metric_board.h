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

  /// A list of numbers, or a matrix row by row if it has columns.
  struct Table {
    std::int64_t step = 0, columns = 0;
    std::vector<double> values;
  };

  /// `name` as in "eval/loss".
  void note(std::string_view name, std::int64_t step, double value) {
    latest_.insert_or_assign(std::string(name), Entry{step, value});
    ++version_;
  }
  /// `name` as in "confusion_matrix/matrix", without "eval/".
  void note_table(const std::string& name, Table table) {
    tables_.insert_or_assign(name, std::move(table));
    ++version_;
  }
  const std::map<std::string, Table, std::less<>>& tables() const { return tables_; }
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
  std::map<std::string, Table, std::less<>> tables_;
  std::uint64_t version_ = 0;
};

}  // namespace lockstep
