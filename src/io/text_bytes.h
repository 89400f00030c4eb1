// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: files that are no text in UTF-8, plain or gzip, named as what they are by their first bytes, with
// the command that makes one of them. Such files are not unpacked: nothing in them has a place.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Throws Error(data) if the first bytes of a file are those of a packed one (packed_form.h), of a workbook,
/// of Parquet, or the byte order mark of UTF-16 or UTF-32.
void refuse_no_text(std::string_view begin, const std::string& path);

}  // namespace lockstep
