// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Compressed files and archives that are not unpacked, by their first bytes, and the command that unpacks
// them. gzip is none of them: it is read.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

struct PackedForm {
  std::string_view begin;    ///< of the file
  std::string_view ending;   ///< ".xz"
  std::string_view what;     ///< "is compressed by xz"
  std::string_view command;  ///< {0}: the file; {1}: the new one, unless the archive has its name
  bool is_archive() const { return command.find("{1}") == std::string_view::npos; }
};

/// Null if a file that begins so has none of these forms.
const PackedForm* packed_form(std::string_view begin);

/// `path` without the ending of the form, or with ".unpacked" after it.
std::string unpacked_path(const PackedForm& form, const std::string& path);

/// The command, whose names of files are words of a shell.
std::string unpack_command(const PackedForm& form, const std::string& path);

}  // namespace lockstep
