// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which files a data set is read from: a list of names and patterns. And what its files have in common, for
// the readers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/params.h"
#include "data/dataset_parts.h"

namespace lockstep {

/// The files that option `name` (a list of texts) means, in the order in which their rows are numbered: the
/// items in their order; those of a pattern (*, ?, [...]; or a folder and a regular expression for names:
/// re:data/part-[0-9]+), and those of a folder but names that begin with "." or "_", sorted by the bytes of
/// their paths, on every machine and in every locale. An item that is the name of a file is no pattern.
/// Throws Error(config) if nothing is named, Error(data) if a pattern matches no file, a folder cannot be
/// read, or one file is named twice.
std::vector<std::string> data_files(const Params& params, std::string_view name,
                                    const std::string& base_directory);

/// The files of items that are not an option: `lockstep predict --input`. Not empty.
std::vector<std::string> data_files(std::span<const std::string> items, const std::string& base_directory);

/// Files and folders of items; folders are kept as they are: for readers that look into them.
std::vector<std::string> files_and_folders(std::span<const std::string> items,
                                           const std::string& base_directory);

/// data_files() of the option `path`: ReaderEntry::files of most readers.
std::vector<std::string> files_of_path(const Params& params, const std::string& base_directory);
/// The file of a `path` that is one file.
std::vector<std::string> file_of_path(const Params& params, const std::string& base_directory);

/// How messages about all of them call files: "a.csv", or "a.csv to f.csv (6 files)".
std::string name_of_files(const std::vector<std::string>& paths);

/// Adds to `parts` that the samples from here on are the records from `first_record` on of `path`.
void begin_file(DatasetParts& parts, const std::string& path, std::int64_t first_record);

/// The sum of `counts`. Throws Error(data) about `source` if it does not fit into 63 bits.
std::int64_t total_records(std::span<const std::int64_t> counts, const std::string& source);

/// The rows of each file that are among the records `chosen` of all; files have `counts` records.
std::vector<RowRange> rows_of_files(std::span<const std::int64_t> counts, const RowRange& chosen);

/// Adds these records of the files `names` to the samples of `parts`.
void add_files(DatasetParts& parts, const std::vector<std::string>& names,
               const std::vector<RowRange>& ranges);

}  // namespace lockstep
