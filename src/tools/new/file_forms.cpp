// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of forms that no reader reads: what they are, and the command that makes data of them that one reads.
// Compressed files are told by their first bytes as InputFile gives them: those of a compression that it
// unpacks never look like one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/message_lines.h"
#include "core/shell_word.h"
#include "core/shown_text.h"
#include "io/input_file.h"
#include "io/packed_form.h"
#include "tools/new/data_guess.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

constexpr std::string_view kPandas =
    "python3 -c \"import pandas; pandas.read_{2}('{0}').to_csv('{1}.csv', index=False)\"";
struct PandasForm {
  std::string_view ending, name, reader;
};
constexpr std::array<PandasForm, 10> kTables{{{".parquet", "is a Parquet file", "parquet"},
                                              {".feather", "is a Feather file", "feather"},
                                              {".xlsx", "is a spreadsheet", "excel"},
                                              {".xls", "is a spreadsheet", "excel"},
                                              {".ods", "is a spreadsheet", "excel"},
                                              {".sav", "is a table of SPSS", "spss"},
                                              {".dta", "is a table of Stata", "stata"},
                                              {".sas7bdat", "is a table of SAS", "sas"},
                                              {".pkl", "is a pickle of Python", "pickle"},
                                              {".pickle", "is a pickle of Python", "pickle"}}};

/// "data.csv" of "a/data.csv.xz".
std::string without_last_ending(const std::string& place) {
  const auto dot = place.rfind('.'), slash = place.rfind('/');
  return dot == std::string::npos || (slash != std::string::npos && dot < slash) ? place
                                                                                 : place.substr(0, dot);
}

/// `then`: the file that the command makes.
[[noreturn]] void fail(const std::string& place, std::string_view what, const std::string& command,
                       const std::string& then) {
  throw error_of_lines(ErrorKind::data, fmt::format("{}, which is not read", what), place,
                       shown_format("Run: {}\n  Then: lockstep new {}", command, shell_word(then)));
}

void check_packed(const std::string& place, std::string_view begin) {
  const PackedForm* const form = packed_form(begin);
  if (form == nullptr) return;
  const std::string unpacked = unpacked_path(*form, place);
  if (form->ending == ".zip" && ending_of(unpacked).empty())
    fail(place, form->what, fmt::format("unzip {} -d {}", shell_word(place), shell_word(unpacked)), unpacked);
  fail(place, form->what, unpack_command(*form, place), form->is_archive() ? "FOLDER" : unpacked);
}

}  // namespace

void check_form(const std::string& place) {
  const std::string ending = ending_of(place), base = without_last_ending(place);
  const std::string quoted = name_in_quotes(place), base_quoted = name_in_quotes(base);
  for (const PandasForm& form : kTables)
    if (ending == form.ending)
      fail(place, form.name, fmt::format(fmt::runtime(kPandas), quoted, base_quoted, form.reader),
           base_quoted + ".csv");
  const bool of_arrays = ending == ".h5" || ending == ".hdf5" || ending == ".nc" || ending == ".mat";
  if (of_arrays && lower_case(place).ends_with(".gz"))
    fail(place, "is compressed by gzip", fmt::format("gzip -dc {} > {}", shell_word(place), shell_word(base)),
         base);
  std::string begin(128, '\0');
  InputFile file(place);
  begin.resize(file.read(begin.data(), begin.size()));
  if (begin.starts_with("MATLAB 5.0") && ending == ".mat")
    fail(place, "is a MATLAB file of version 5",
         fmt::format("python3 -c \"import numpy, scipy.io; numpy.savez('{1}.npz', **{{k: "
                     "numpy.ascontiguousarray(v) for k, v in "
                     "scipy.io.loadmat('{0}').items() if getattr(v, 'dtype', 'O') != 'O'}})\"",
                     quoted, base_quoted),
         base_quoted + ".npz");
  if (begin.starts_with("CDF\x01") || begin.starts_with("CDF\x02") || begin.starts_with("CDF\x05"))
    fail(place, "is a netCDF-3 file",
         fmt::format("nccopy -k nc4 {} {}", shell_word(place), shell_word(base + "-4.nc")), base + "-4.nc");
  if (ending != ".npz") check_packed(place, begin);
  const auto first = begin.find_first_not_of(" \t\r\n");
  if (ending == ".json" && first != std::string::npos && begin[first] == '[')
    fail(place, "is one JSON array",
         fmt::format(
             "python3 -c \"import json; open('{1}.jsonl', 'w').writelines(json.dumps(r) + '\\n' for r in "
             "json.load(open('{0}')))\"",
             quoted, base_quoted),
         base_quoted + ".jsonl");
}

}  // namespace lockstep
