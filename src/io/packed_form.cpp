// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/packed_form.h"

#include <fmt/format.h>

#include <array>

#include "core/shell_word.h"

namespace lockstep {

namespace {

using namespace std::string_view_literals;

constexpr std::array kForms{
    PackedForm{"\xFD"
               "7zXZ\0"sv,
               ".xz", "is compressed by xz", "xz -dc {0} > {1}"},
    PackedForm{"BZh"sv, ".bz2", "is compressed by bzip2", "bzip2 -dc {0} > {1}"},
    PackedForm{"\x28\xB5\x2F\xFD"sv, ".zst", "is compressed by zstd", "zstd -dc {0} > {1}"},
    PackedForm{"\x04\x22\x4D\x18"sv, ".lz4", "is compressed by lz4", "lz4 -dc {0} > {1}"},
    PackedForm{"\x1F\x9D"sv, ".Z", "is compressed by compress", "gzip -dc {0} > {1}"},
    PackedForm{"PK\x03\x04"sv, ".zip", "is a ZIP archive", "unzip -p {0} > {1}"},
    PackedForm{"7z\xBC\xAF\x27\x1C"sv, ".7z", "is an archive of 7-Zip", "7z x {0}"},
    PackedForm{"Rar!\x1A\x07"sv, ".rar", "is a RAR archive", "unrar x {0}"},
};

/// "BZh9" and the first bytes of a block: three letters alone may begin a table.
bool is_bzip2(std::string_view begin) {
  return begin.size() >= 10 && begin[3] >= '1' && begin[3] <= '9' &&
         (begin.substr(4, 6) == "1AY&SY"sv || begin.substr(4, 6) == "\x17\x72\x45\x38\x50\x90"sv);
}

}  // namespace

const PackedForm* packed_form(std::string_view begin) {
  for (const PackedForm& form : kForms)
    if (begin.starts_with(form.begin) && (form.ending != ".bz2" || is_bzip2(begin))) return &form;
  return nullptr;
}

std::string unpacked_path(const PackedForm& form, const std::string& path) {
  if (path.ends_with(form.ending) && path.size() > form.ending.size())
    return path.substr(0, path.size() - form.ending.size());
  return path + ".unpacked";
}

std::string unpack_command(const PackedForm& form, const std::string& path) {
  return fmt::format(fmt::runtime(form.command), shell_word(path), shell_word(unpacked_path(form, path)));
}

}  // namespace lockstep
