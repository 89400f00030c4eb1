// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict` at work: what its steps share. predict_samples.cpp opens models, samples and the output;
// predict_rows.cpp predicts and writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/bad_records.h"
#include "driver/commands/predict.h"
#include "run/jobs/true_labels.h"
#include "tools/predict/predict_input.h"
#include "tools/predict/predict_members.h"

namespace lockstep {

/// A command at work, on a rank.
struct PredictWork {
  const PredictArguments& arguments;
  const std::vector<MemberTarget>& targets;
  std::vector<DataOptions> inputs;               ///< by member; none with --set-name
  std::unique_ptr<SpooledInput> standard_input;  ///< null: not read
  std::vector<Member> members;
  std::vector<UsedDataset> views;    ///< of --augmentations; `streams` refer to them
  std::vector<UsedDataset> samples;  ///< by member
  std::vector<BadRecord> bad;        ///< samples that have no predictions
  std::vector<std::string> ids;      ///< of all samples of the input, or of the set; empty: none
  std::function<std::string(const std::string& where)> id_of_file;  ///< instead; null: not from files
  std::vector<std::unique_ptr<PredictionStream>> streams;           ///< of members, or of views
  std::string_view ending;

  std::unique_ptr<OutputFile> file;          ///< on rank 0
  std::unique_ptr<PredictionWriter> writer;  ///< likewise
  std::unique_ptr<PredictionPart> part;      ///< of this rank, where all ranks write
  std::int64_t written = 0;                  ///< samples that `writer` has got
  std::optional<TrueLabels> labels;
  std::vector<PredictedHead> heads;
  std::vector<std::uint64_t> offsets;
  std::string shared_path;

  RunContext& first() { return *members.front().context; }
  Communicator& world() { return first().world(); }
  bool is_ensemble() const { return members.size() > 1; }
  bool takes_set() const { return !arguments.set_name.empty(); }
  /// Of the file of predictions.
  std::int64_t num_rows() const { return streams.front()->size() + std::ssize(bad); }
  /// The place in the file of the sample at a position of the predictions: bad samples have places, too.
  std::int64_t place_of(std::int64_t position) const {
    std::int64_t before = 0;  // bad samples, of which number k has sample - k good ones before it
    for (std::int64_t beyond = std::ssize(bad); before < beyond;) {
      const std::int64_t middle = (before + beyond) / 2;
      if (bad[static_cast<std::size_t>(middle)].sample - middle <= position)
        before = middle + 1;
      else
        beyond = middle;
    }
    return position + before;
  }
  /// The position in the predictions of a place in the file; none of a bad sample.
  std::optional<std::int64_t> position_of(std::int64_t place) const {
    const auto at = std::ranges::lower_bound(bad, place, {}, &BadRecord::sample);
    if (at != bad.end() && at->sample == place) return std::nullopt;
    return place - (at - bad.begin());
  }
};

/// The numbers of the samples in the files of the set that is predicted; null: those of their places.
std::function<std::int64_t(std::int64_t)> numbers_of(const PredictWork& work);
/// Predicts all samples and writes their rows. All ranks. Throws SharedError.
void predict_all(PredictWork& work);
/// Completes the file. All ranks. Throws SharedError.
void close_prediction_files(PredictWork& work);

}  // namespace lockstep
