// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The samples that `lockstep predict` reads: in the form of the training data, or in another one
// (--input-format, or by the ending of the file), and from standard input. What the configuration says of an
// input holds for them, too: its scale, normalisation, layout and transforms, and which rows of the files
// belong together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/bad_records.h"
#include "io/file_descriptor.h"
#include "run/sections/config.h"

namespace lockstep {

/// How the files of `inputs` are read: as the training data, or, for inputs of numbers, as `format` says
/// (empty: the ending of the first file of each input). `options` are KEY=VALUE of the other reader, for a
/// model with one input. Opens no file. Throws Error(usage) or Error(config).
DataOptions options_of_input(const Config& config, const std::vector<std::string>& inputs,
                             const std::string& format, const std::vector<std::string>& options);

/// True for "-".
bool is_standard_input(const std::string& input);

/// Standard input of rank 0, as a file that each rank has in memory.
class SpooledInput {
 public:
  /// All ranks. Throws Error(data) on rank 0 alone: wrap it in agree(), and call share() afterwards.
  SpooledInput();
  void read_on_chief();
  void share(Communicator& world);
  /// A path that is valid until the object ends.
  std::string path() const;
  /// "npy", "hdf5", "images" or "csv", as the first bytes say.
  std::string format() const;

 private:
  FileDescriptor file_;
  std::string text_;
};

/// The samples of an input. Samples of several inputs have the rows of each that belong together: with
/// `rows: [0, 90]` of one input and `rows: [3, 93]` of another, sample i has row i of the one and row i + 3
/// of the other.
struct InputSamples {
  std::shared_ptr<const Dataset> data;  ///< without the bad ones
  /// Left out with bad_records: skip, ascending by their numbers among all samples.
  std::vector<BadRecord> bad;
  std::int64_t size() const { return data->size() + std::ssize(bad); }
};

/// Reads the samples; `files` by input. If only their labels cannot be read, the error says so. Not
/// collective.
InputSamples read_input(const DataOptions& options, const Dataset& trained,
                        const std::vector<std::vector<std::string>>& files, bool labels, int ranks_on_host,
                        const std::string& base_directory);

}  // namespace lockstep
