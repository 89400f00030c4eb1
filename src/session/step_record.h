// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The record of a step: for each microshard a hash of every output and gradient of each layer; hashes of the
// sums over microshards; hashes of the variables after the step. Rows are in the order of execution. The
// record tells which rank computed which microshard, but no hash depends on it.
//
// On disk, in the run directory: records/step-00000005.json, and records/step-00000005.h5, a checkpoint of
// the state before that step. On-disk names: do not change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct RecordRow {
  std::string stage;  ///< "input", "forward", "loss", "backward", "sum", "update"
  std::string layer;  ///< "conv1 + relu1"; empty outside layers
  std::string what;   ///< "output", "gradient of conv1/kernel"
  /// True: a hash per microshard, 0 for one without samples. False: a value that is the same on all ranks,
  /// with one hash; if the ranks differ, one hash per rank.
  bool per_microshard = true;
  std::vector<std::uint64_t> hashes;
};

struct StepRecord {
  std::int64_t step = 0;  ///< counted from 1
  double loss = 0, accuracy = 0;
  bool updated = true;  ///< false: the update was skipped (train.on_nan, a loss spike)
  /// What the bits may depend on: build, instruction set, libraries, data.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> hosts;     ///< of the ranks, in order
  std::vector<std::int64_t> samples;  ///< of each microshard
  std::vector<RecordRow> rows;        ///< without "update" if the step did not finish

  int ranks() const { return static_cast<int>(hosts.size()); }
  int microshards() const { return static_cast<int>(samples.size()); }
};

/// One row that differs, and where: microshards, or ranks (see RecordRow::per_microshard).
struct RecordDifference {
  std::size_t row = 0;
  std::vector<int> places;
};
/// The differences in the order of execution, of the rows that both records have: one of a step that did not
/// finish has fewer. Throws Error(config) if the two are not of the same model and batch.
std::vector<RecordDifference> differences(const StepRecord& recorded, const StepRecord& repeated);
/// "forward of conv1 (conv2d): output".
std::string row_text(const RecordRow& row);

std::string to_json(const StepRecord& record);
/// Throws Error(checkpoint), which names `where`, if the text is no record.
StepRecord record_from_json(std::string_view text, const std::string& where);

std::string record_path(const std::string& run_dir, std::int64_t step);
std::string record_state_path(const std::string& run_dir, std::int64_t step);
/// Steps whose records are complete, ascending. Throws Error(checkpoint) if the folder cannot be read.
std::vector<std::int64_t> recorded_steps(const std::string& run_dir);

}  // namespace lockstep
