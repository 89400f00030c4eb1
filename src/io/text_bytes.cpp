// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/text_bytes.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "core/error.h"
#include "core/shell_word.h"
#include "io/packed_form.h"

namespace lockstep {

namespace {

using namespace std::string_view_literals;

struct Table {
  std::string_view begin;         ///< of the file
  std::string_view what, advice;  ///< {0}: the file; {1}: the new one
};
constexpr std::array kTables{
    Table{"\xD0\xCF\x11\xE0"sv, "is a workbook, no text",
          "Save the sheet as CSV (UTF-8) in the spreadsheet program."},
    Table{
        "PAR1"sv, "is a Parquet file",
        "Plain files and gzip can be read. Make one: "
        "python3 -c 'import sys, pandas; pandas.read_parquet(sys.argv[1]).to_csv(sys.argv[2], index=False)' "
        "{0} {1}"}};

struct Encoding {
  std::string_view mark, name;
};
constexpr std::array kEncodings{// that of UTF-32 begins with that of UTF-16
                                Encoding{"\xFF\xFE\0\0"sv, "UTF-32"}, Encoding{"\0\0\xFE\xFF"sv, "UTF-32"},
                                Encoding{"\xFF\xFE"sv, "UTF-16"}, Encoding{"\xFE\xFF"sv, "UTF-16"}};

Error table_error(const Table& table, const std::string& path) {
  const std::string made = std::filesystem::path(path).replace_extension(".csv").string();
  return {ErrorKind::data, std::string(table.what), path,
          fmt::format(fmt::runtime(table.advice), shell_word(path), shell_word(made))};
}

}  // namespace

void refuse_no_text(std::string_view begin, const std::string& path) {
  for (const Table& table : kTables)
    if (begin.starts_with(table.begin)) throw table_error(table, path);
  if (const PackedForm* const form = packed_form(begin); form != nullptr) {
    if (path.ends_with(".xlsx") || path.ends_with(".ods")) throw table_error(kTables.front(), path);
    throw Error(ErrorKind::data, std::string(form->what), path,
                fmt::format("Plain files and gzip can be read. Make one: {}", unpack_command(*form, path)));
  }
  for (const Encoding& encoding : kEncodings) {
    if (!begin.starts_with(encoding.mark)) continue;
    const std::filesystem::path from(path);
    const auto to = from.parent_path() / (from.stem().string() + ".utf8" + from.extension().string());
    throw Error(ErrorKind::data, fmt::format("is a text in {}", encoding.name), path,
                fmt::format("Convert it to UTF-8: iconv -f {} -t UTF-8 {} > {}", encoding.name,
                            shell_word(path), shell_word(to.string())));
  }
}

}  // namespace lockstep
