// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: by what the first rows of a file look separated, and how its numbers look. It
// decides where no option does, and it is what messages say about a table that an option cuts wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/csv_options.h"

namespace lockstep {

/// The separator that a first line "sep=;" names, which spreadsheet programs write and read.
std::optional<char> separator_line(std::string_view line);

/// The first rows of a file: those that `head` holds as a whole, without blank lines and comments.
/// `is_all`: nothing follows `head`.
std::vector<std::string_view> first_csv_rows(std::string_view head, bool is_all, const CsvFormat& format);

/// The separator of which all rows have as many, outside of quotes: a tab, ';', '|', ',' or kCsvBlanks.
/// Nothing if there is none. Where ',' may be one, too, another one is taken only if the comma is that of
/// numbers.
std::optional<char> likely_delimiter(const std::vector<std::string_view>& rows, const CsvFormat& format);

/// Numbers have a decimal comma: some such as "0,5", which cannot be thousands, and none has a point.
bool has_decimal_comma(const std::vector<std::string_view>& rows, char delimiter, const CsvFormat& format);

/// `delimiter: ";"`, as a configuration has it.
std::string delimiter_text(char delimiter);

}  // namespace lockstep
