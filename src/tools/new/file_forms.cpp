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
#include "io/input_file.h"
#include "tools/new/data_guess.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

struct Compression {
  std::string_view begin, name,
      command;  ///< the first bytes; the command has {0} the file and {1} the new one
};
constexpr std::array<Compression, 6> kCompressions{{
    {std::string_view("\xfd"
                      "7zXZ",
                      5),
     "is compressed by xz", "xz -dc {0} > {1}"},
    {"BZh", "is compressed by bzip2", "bzip2 -dc {0} > {1}"},
    {"\x28\xb5\x2f\xfd", "is compressed by zstd", "zstd -dc {0} > {1}"},
    {"PK\x03\x04", "is a zip archive", "unzip -p {0} > {1}"},
    {"7z\xbc\xaf\x27\x1c", "is a 7-Zip archive", "7z x {0}"},
    {"Rar!", "is a RAR archive", "unrar x {0}"},
}};

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

[[noreturn]] void fail(const std::string& place, std::string_view what, const std::string& command,
                       const std::string& then) {
  throw Error(ErrorKind::data, fmt::format("{}, which is not read", what), place,
              fmt::format("Run: {}\n  Then: lockstep new {}", command, then));
}

void check_compression(const std::string& place, const std::string& begin) {
  for (const Compression& form : kCompressions) {
    if (!begin.starts_with(form.begin)) continue;
    std::string unpacked = without_last_ending(place);
    if (unpacked == place) unpacked += ".unpacked";
    const bool is_archive = form.command.find("{1}") == std::string_view::npos;
    if (form.name == "is a zip archive" && ending_of(unpacked).empty())
      fail(place, form.name, fmt::format("unzip {} -d {}", place, unpacked), unpacked);
    fail(place, form.name, fmt::format(fmt::runtime(form.command), place, unpacked),
         is_archive ? "FOLDER" : unpacked);
  }
}

}  // namespace

void check_form(const std::string& place) {
  const std::string ending = ending_of(place), base = without_last_ending(place);
  for (const PandasForm& form : kTables)
    if (ending == form.ending)
      fail(place, form.name, fmt::format(fmt::runtime(kPandas), place, base, form.reader), base + ".csv");
  const bool of_arrays = ending == ".h5" || ending == ".hdf5" || ending == ".nc" || ending == ".mat";
  if (of_arrays && lower_case(place).ends_with(".gz"))
    fail(place, "is compressed by gzip", fmt::format("gzip -dc {} > {}", place, base), base);
  std::string begin(128, '\0');
  InputFile file(place);
  begin.resize(file.read(begin.data(), begin.size()));
  if (begin.starts_with("MATLAB 5.0") && ending == ".mat")
    fail(place, "is a MATLAB file of version 5",
         fmt::format("python3 -c \"import numpy, scipy.io; numpy.savez('{1}.npz', **{{k: "
                     "numpy.ascontiguousarray(v) for k, v in "
                     "scipy.io.loadmat('{0}').items() if getattr(v, 'dtype', 'O') != 'O'}})\"",
                     place, base),
         base + ".npz");
  if (begin.starts_with("CDF\x01") || begin.starts_with("CDF\x02") || begin.starts_with("CDF\x05"))
    fail(place, "is a netCDF-3 file", fmt::format("nccopy -k nc4 {0} {1}-4.nc", place, base), base + "-4.nc");
  if (ending != ".npz") check_compression(place, begin);
  const auto first = begin.find_first_not_of(" \t\r\n");
  if (ending == ".json" && first != std::string::npos && begin[first] == '[')
    fail(place, "is one JSON array",
         fmt::format(
             "python3 -c \"import json; open('{1}.jsonl', 'w').writelines(json.dumps(r) + '\\n' for r in "
             "json.load(open('{0}')))\"",
             place, base),
         base + ".jsonl");
}

}  // namespace lockstep
