// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`, first half: which reader reads some files, and with which options. It looks at names and at
// the first lines; what the samples are, the reader says when it has opened them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A line of a configuration.
struct Setting {
  std::string key, value;  ///< the value is YAML
  std::string comment = {};
};

struct DataGuess {
  std::string format;
  std::string what;                          ///< in words: "a table of 65 columns, without names"
  std::vector<Setting> common, train, eval;  ///< of section data, data.train and data.eval
  std::string predicts = {};                 ///< name of the labels, if there is one
  std::vector<std::string> notes = {};       ///< for the user: what is left out, and why
  std::vector<std::string> assumed = {};     ///< what may be wrong, and which option says otherwise
  bool has_eval = false;                     ///< the files have an evaluation set of their own
  bool is_text = false, is_continuous_text = false, has_many_labels = false;
  bool is_bytes = false;      ///< texts are bytes, without a vocabulary
  bool is_measured = false;   ///< labels are numbers to predict, no classes
  bool knows_labels = false;  ///< classes or numbers is decided; otherwise the labels' values decide
  /// The evaluation set is a file or folder of its own, which may lack what is needed: labels, columns.
  bool may_lack_eval = false;
  bool has_no_channels = false;  ///< volumes, or pictures of bytes, whose last axis is one of space
};

struct DataQuestion {
  std::string path;                 ///< as the configuration gets it
  std::string place;                ///< as it is opened from here
  std::string features, labels;     ///< a column, dataset or field; empty: guess
  bool numbers = false;             ///< labels are numbers to predict, whatever they look like
  bool classes = false;             ///< labels are classes, whatever they look like
  std::optional<bool> header = {};  ///< the first line of a table names its columns; empty: guess
  /// Asks a person a question with yes or no, of which the second is the likely answer; null: nobody is
  /// there.
  std::function<bool(const std::string&, bool)> confirm = {};
};

/// Throws Error(data) for what it cannot read or does not know, with what to do.
DataGuess guess_data(const DataQuestion& question);
/// The guess for each form of data; question.place is such a file or folder.
DataGuess guess_folder(const DataQuestion& question);
DataGuess guess_hdf5(const DataQuestion& question);
DataGuess guess_jsonl(const DataQuestion& question);
DataGuess guess_matlab(const DataQuestion& question);
/// .npz; a .npy file with the one of its labels next to it; a folder of such.
DataGuess guess_numpy(const DataQuestion& question);
DataGuess guess_table(const DataQuestion& question);
DataGuess guess_tfrecord(const DataQuestion& question);
/// The size and channels of a sample are those of the first image, if that is small.
void guess_image(DataGuess& guess, std::span<const std::byte> file, const std::string& place);
bool is_image_name(const std::string& path);

/// ".csv" of "a.CSV.gz": the ending without that of a compression.
std::string ending_of(const std::string& path);
/// Throws Error(data): `what`, and which data are known.
[[noreturn]] void unknown_data(const std::string& path, const std::string& what);
/// Throws Error(data) with the command to run for a file of a form that no reader reads: compressed, a table
/// of a spreadsheet, a pickle and so on. Returns where a reader may read it.
void check_form(const std::string& place);

}  // namespace lockstep
