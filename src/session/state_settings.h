// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The settings that the state of a run depends on. State that was computed with one setting says nothing
// under another one: a best loss is not a best accuracy. Each piece of state declares its settings, and
// checkpoints have them. A run that continues keeps the pieces whose settings are as they were, begins the
// others anew, and logs which (docs/checkpoints.md, "State and settings").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// Names and values, in words for the log: {"metric", "eval/loss"}. Empty: the state is valid under all
/// settings.
using StateSettings = std::vector<std::pair<std::string, std::string>>;

/// One piece of state.
struct StatePiece {
  std::string name;  ///< unique; in checkpoints: do not change
  StateSettings settings = {};
  /// So many of its numbers, the first ones, are valid under all settings.
  std::size_t lasting = 0;
  /// Whole numbers that belong to the piece and are no tensor.
  std::map<std::string, std::int64_t> numbers = {};
};

/// What differs, as "metric was eval/loss and is eval/accuracy"; empty: nothing.
std::string differences(const StateSettings& before, const StateSettings& now);

/// The pieces of a checkpoint.
class StatePieces {
 public:
  void add(StatePiece piece);
  const StatePiece* find(std::string_view name) const;
  const std::vector<StatePiece>& all() const { return pieces_; }
  bool empty() const { return pieces_.empty(); }

  /// The text in a checkpoint (CheckpointHeader::settings), JSON.
  std::string text() const;
  /// Of text(); "" for a file of an earlier version, which has no pieces. Throws Error(checkpoint) with
  /// `where`.
  static StatePieces parse(std::string_view text, const std::string& where);

 private:
  std::vector<StatePiece> pieces_;
};

/// What became of a piece when a run continued.
struct PieceOutcome {
  std::string name;
  std::string why = {};  ///< why it is begun anew; empty: it is kept
  bool changed = false;  ///< the reason is that its settings changed
};
/// For the log: one line if all is kept, else one for each piece.
std::vector<std::string> lines_of(const std::vector<PieceOutcome>& outcomes);

/// Collects what becomes of the pieces.
class StateReport {
 public:
  /// `before`: what the checkpoint has. It outlives the report.
  explicit StateReport(const StatePieces& before) : before_(before) {}

  /// Whether the piece is kept: the checkpoint has it with the same settings, or is of a version that noted
  /// none.
  bool keeps(const StatePiece& now);
  void kept(const std::string& name) { outcomes_.push_back({name}); }
  void begins_anew(const std::string& name, const std::string& why) { outcomes_.push_back({name, why}); }
  const std::vector<PieceOutcome>& outcomes() const { return outcomes_; }

 private:
  const StatePieces& before_;
  std::vector<PieceOutcome> outcomes_;
};

}  // namespace lockstep
