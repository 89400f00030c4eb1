// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: files that are already apart: train.csv and test.csv in one folder.
#pragma once

#include <string>
#include <vector>

#include "tools/new/data_guess.h"

namespace lockstep {

/// What is in a folder, without what is_left_over(), sorted.
struct FolderContents {
  std::vector<std::string> folders, files;  ///< names
};
FolderContents contents_of(const std::string& folder);

/// The file of the training set among `files`; empty without one, or with several.
std::string train_file(const std::vector<std::string>& files);

/// If question.place is the file of a training set, and a file of the same name for validation or a test lies
/// next to it, evaluations are of that one.
void add_eval_file(DataGuess& guess, const DataQuestion& question);

/// Settings that name something in `from` are those of the training set; those of the evaluation set name the
/// same in `to`.
void separate_sets(DataGuess& guess, const std::string& from, const std::string& to);

}  // namespace lockstep
