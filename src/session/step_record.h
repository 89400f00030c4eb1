// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What is kept of a recorded step: a hash of everything that each layer gave, forward and backward, for each
// microshard; what the microshards added up to; the variables afterwards. Rows are in the order of execution.
// Which rank computed which microshard is in it, but no hash depends on it.
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
  /// True: a hash per microshard, 0 for one without samples. False: something that all ranks have alike; one
  /// hash, or, if they did not have it alike, one per rank.
  bool per_microshard = true;
  std::vector<std::uint64_t> hashes;
};

struct StepRecord {
  std::int64_t step = 0;  ///< counted from 1: what the step made of the state after step - 1
  double loss = 0, accuracy = 0;
  bool updated = true;  ///< false: the update was left out (train.on_nan, a loss spike)
  /// What bits may depend on: build, instruction set, libraries, data.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> hosts;     ///< of the ranks, in order
  std::vector<std::int64_t> samples;  ///< of each microshard
  std::vector<RecordRow> rows;        ///< without "update" where the step did not come to its end

  int ranks() const { return static_cast<int>(hosts.size()); }
  int microshards() const { return static_cast<int>(samples.size()); }
};

/// One row that differs, and where: microshards, or ranks (see RecordRow::per_microshard).
struct RecordDifference {
  std::size_t row = 0;
  std::vector<int> places;
};
/// In order of execution; rows that only one of them has, since its step did not come to its end, are left
/// out. Throws Error(config) if the two are not of the same model and batch.
std::vector<RecordDifference> differences(const StepRecord& recorded, const StepRecord& repeated);
/// "forward of conv1 (conv2d): output".
std::string row_text(const RecordRow& row);

std::string to_json(const StepRecord& record);
/// Throws Error(checkpoint) that names `where`, if this is not the text of a record.
StepRecord record_from_json(std::string_view text, const std::string& where);

std::string record_path(const std::string& run_dir, std::int64_t step);
std::string record_state_path(const std::string& run_dir, std::int64_t step);
/// Steps whose records are complete, ascending. Throws Error(checkpoint) if the folder cannot be read.
std::vector<std::int64_t> recorded_steps(const std::string& run_dir);

}  // namespace lockstep
