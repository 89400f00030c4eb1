// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pieces of HTML for reports. Whatever a run or a person has named (tags, classes, paths, configurations)
// goes through escaped().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::report {

/// A text for HTML, and for attributes in quotes. Control characters and bytes that are no UTF-8 become
/// U+FFFD.
std::string escaped(std::string_view text);

/// A JSON text that may stand inside <script>: no end of the element, no comment.
std::string json_for_script(std::string json);
/// A text as JSON, for scripts.
std::string json_text(std::string_view text);
/// Numbers as JSON with six digits; what is not finite is null.
std::string json_numbers(std::span<const double> values);
std::string json_number(double value);

/// A cell of a table. `html` is put in as it is.
struct Cell {
  std::string html;
  bool is_number = false;  ///< aligned to the right, with digits of one width
  std::string style_class = {};
};
Cell text_cell(std::string_view text);
/// Six digits; a dash for what is not finite.
Cell number_cell(double value);
Cell count_cell(std::int64_t value);
std::string number_html(double value);
/// "1,234,567".
std::string grouped(std::int64_t value);

struct Table {
  std::vector<std::string> head;  ///< texts
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> row_classes = {};  ///< by row; may be shorter
  std::string style_class = {};
};
/// A table that scrolls sideways where the window is narrow. Columns whose first cell is a number are aligned
/// to the right, with their heads.
std::string html_of(const Table& table);

/// A section of the page: a heading with an anchor. `body` is HTML.
struct Section {
  std::string id, title, body;
  bool wide = false;
};
/// A paragraph that says what is missing, and how to get it.
std::string missing(std::string_view text);
/// Name and value, side by side. Values are HTML.
std::string facts(std::initializer_list<std::pair<std::string_view, std::string>> list);

std::string base64(std::string_view bytes);

}  // namespace lockstep::report
