// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`, first half: which reader reads some files, and with which options. It looks at names and at
// the first lines; what the samples are, the reader says when it has opened them.
#pragma once

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
  bool has_eval = false;                     ///< the files have an evaluation set of their own
  bool is_text = false, is_continuous_text = false, has_many_labels = false;
  bool is_bytes = false;         ///< texts are bytes, without a vocabulary
  bool is_measured = false;      ///< labels are numbers to predict, no classes
  bool has_no_channels = false;  ///< volumes, or pictures of bytes, whose last axis is one of space
};

struct DataQuestion {
  std::string path;              ///< as the configuration gets it
  std::string place;             ///< as it is opened from here
  std::string features, labels;  ///< a column, dataset or field; empty: guess
  bool numbers = false;          ///< labels are numbers to predict, whatever they look like
  bool classes = false;          ///< labels are classes, whatever they look like
};

/// Throws Error(data) for what it cannot read or does not know, with what to do.
DataGuess guess_data(const DataQuestion& question);
/// The guess for JSON lines.
DataGuess guess_jsonl(const DataQuestion& question);
/// The guess for a table: .csv, .tsv, also with .gz.
DataGuess guess_table(const DataQuestion& question);

}  // namespace lockstep
