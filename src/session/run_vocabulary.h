// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The files that a run directory keeps of a data set of text: vocabulary.txt (a line per id: word <tab>
// count), or tokenizer.json of a tokenizer that came from a file; of one whose classes have names:
// classes.txt (a line per class); of a table with columns of texts: categories.txt (a line per value: column
// <tab> value). A run is continued, evaluated and used only with the same files, because the id of a token is
// the row of an embedding.
#pragma once

#include <optional>
#include <string>

#include "data/dataset.h"
#include "io/checkpoint.h"

namespace lockstep {

class Vocabulary;

/// Adds the files that there are for the data.
void add_vocabulary(const Dataset& data, KeptFiles& kept);
/// Throws Error(data), which names the first difference, if the directory has other words or classes than the
/// data. The chief.
void check_vocabulary(const std::string& run_dir, const Dataset& data);
/// That of the run, or nothing if it has none.
std::optional<Vocabulary> run_vocabulary(const std::string& run_dir);
/// Of a file vocabulary.txt, or of one whose name ends with ".json": tokenizer.json.
Vocabulary read_vocabulary(const std::string& path);

}  // namespace lockstep
