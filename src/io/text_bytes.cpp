// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/text_bytes.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "core/error.h"

namespace lockstep {

namespace {

using namespace std::string_view_literals;

struct Packed {
  std::string_view begin;  ///< of the file
  std::string_view ending;
  std::string_view what;
  std::string_view command;  ///< {0}: the file; {1}: without its ending; empty: of a workbook
};
constexpr std::array kPacked{
    Packed{"\xFD"
           "7zXZ\0"sv,
           ".xz", "is compressed by xz", "xz -dk {0}"},
    Packed{"BZh"sv, ".bz2", "is compressed by bzip2", "bzip2 -dk {0}"},
    Packed{"\x28\xB5\x2F\xFD"sv, ".zst", "is compressed by zstd", "zstd -d {0}"},
    Packed{"\x04\x22\x4D\x18"sv, ".lz4", "is compressed by lz4", "lz4 -d {0} {1}"},
    Packed{"\x1F\x9D"sv, ".Z", "is compressed by compress", "gzip -dk {0}"},
    Packed{"7z\xBC\xAF\x27\x1C"sv, ".7z", "is an archive of 7-Zip", "7z x {0}"},
    Packed{"PK\x03\x04"sv, ".zip", "is a ZIP archive", "unzip {0}"},
    Packed{"\xD0\xCF\x11\xE0"sv, ".xls", "is a workbook of Excel", ""},
    Packed{
        "PAR1"sv, ".parquet", "is a Parquet file",
        "python3 -c 'import sys, pandas; pandas.read_parquet(sys.argv[1]).to_csv(sys.argv[2], index=False)' "
        "{0} {1}.csv"}};

struct Encoding {
  std::string_view mark, name;
};
constexpr std::array kEncodings{// that of UTF-32 begins with that of UTF-16
                                Encoding{"\xFF\xFE\0\0"sv, "UTF-32"}, Encoding{"\0\0\xFE\xFF"sv, "UTF-32"},
                                Encoding{"\xFF\xFE"sv, "UTF-16"}, Encoding{"\xFE\xFF"sv, "UTF-16"}};

/// "BZh9" and the first bytes of a block: three letters alone may begin a table.
bool is_bzip2(std::string_view begin) {
  return begin.size() >= 10 && begin[3] >= '1' && begin[3] <= '9' &&
         (begin.substr(4, 6) == "1AY&SY"sv || begin.substr(4, 6) == "\x17\x72\x45\x38\x50\x90"sv);
}

std::string_view without_ending(std::string_view path, std::string_view ending) {
  if (path.ends_with(ending)) path.remove_suffix(ending.size());
  return path;
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text)
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  return word + "'";
}

void refuse_no_text(std::string_view begin, const std::string& path) {
  for (const Packed& packed : kPacked) {
    if (!begin.starts_with(packed.begin) || (packed.ending == ".bz2" && !is_bzip2(begin))) continue;
    if (packed.command.empty() || path.ends_with(".xlsx") || path.ends_with(".ods"))
      throw Error(ErrorKind::data, "is a workbook, no text", path,
                  "Save the sheet as CSV (UTF-8) in the spreadsheet program.");
    throw Error(ErrorKind::data, std::string(packed.what), path,
                fmt::format("Plain files and gzip can be read. Make one: {}",
                            fmt::format(fmt::runtime(packed.command), shell_word(path),
                                        shell_word(without_ending(path, packed.ending)))));
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
