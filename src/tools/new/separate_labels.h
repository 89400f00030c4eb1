// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: tables whose labels are in another file, such as X_train.txt and y_train.txt. The reader of
// tables takes one file, so a command joins them.
#pragma once

#include <string>
#include <vector>

#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"

namespace lockstep {

/// Of the files of a folder, the features of the training set, or of the only set, if a file next to them has
/// as many labels; empty: there are none.
std::string features_file(const std::string& folder, const std::vector<std::string>& files);

/// Throws Error(data) with the commands that join them if the file next to `table` whose name says so has as
/// many labels as it has rows.
void check_separate_labels(const DataQuestion& question, const TableContents& table);

}  // namespace lockstep
