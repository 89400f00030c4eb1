// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/recorded_media.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::report {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20, kMostTextBytes = std::size_t{1} << 17,
                      kMostTexts = 40;

/// The cells of "| a | b |", without their escapes.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      cell += line[++i];
    } else if (line[i] == '|') {
      const std::size_t first = cell.find_first_not_of(' ');
      cells.push_back(
          first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
      cell.clear();
    } else if (line.substr(i).starts_with("&lt;")) {
      cell += '<';
      i += 3;
    } else if (line.substr(i).starts_with("&amp;")) {
      cell += '&';
      i += 4;
    } else {
      cell += line[i];
    }
  }
  return cells;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,-+e ") == std::string::npos;
}

std::string figure_of(const std::string& tag, std::int64_t step, const ImageData& image) {
  return fmt::format(
      "<figure class=\"sheet\"><img class=\"matrix\" alt=\"{0}\" src=\"data:image/png;base64,{1}\">"
      "<figcaption>{0}, step {2}</figcaption></figure>\n",
      escaped(tag), base64(image.png), grouped(step));
}

std::string figure_of(const LastSound& one) {
  return fmt::format(
      "<figure class=\"sheet\"><audio controls preload=\"metadata\" "
      "src=\"data:audio/wav;base64,{1}\"></audio>"
      "<figcaption>{0}, step {2}</figcaption></figure>\n",
      escaped(one.tag), base64(one.sound.encoded), grouped(one.step));
}

std::string left_out_note(std::size_t left_out, std::string_view what) {
  if (left_out == 0) return {};
  return fmt::format("<p><small>{} of {} more tag{} left out, because they are large.</small></p>\n", what,
                     left_out, left_out == 1 ? " are" : "s are");
}

std::string sounds_html(const std::vector<LastSound>& all, std::size_t& bytes) {
  std::string text;
  std::size_t left_out = 0;
  for (const LastSound& one : all) {
    if (one.sound.content_type != "audio/wav" || bytes + one.sound.encoded.size() > kMostBytes) {
      ++left_out;
      continue;
    }
    bytes += one.sound.encoded.size();
    text += figure_of(one);
  }
  if (all.empty()) return {};
  return "<div class=\"sheets\">\n" + text + "</div>\n" + left_out_note(left_out, "Sounds");
}

std::string texts_html(const std::vector<LastText>& all) {
  std::string text;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const LastText& one = all[i];
    if (i >= kMostTexts || one.markdown.size() > kMostTextBytes) {
      ++left_out;
      continue;
    }
    text += fmt::format("<h3>{}, step {}</h3>\n", escaped(one.tag), grouped(one.step));
    const Table table = table_of_markdown(one.markdown);
    text += table.rows.empty() ? fmt::format("<pre>{}</pre>\n", escaped(one.markdown))
                               : "<div class=\"tall\">" + html_of(table) + "</div>\n";
  }
  return text + left_out_note(left_out, "Texts");
}

}  // namespace

Table table_of_markdown(std::string_view text) {
  Table table{.head = {}, .rows = {}};
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    if (!line.starts_with('|')) return {.head = {}, .rows = {}};
    if (number == 0) {
      table.head = cells_of(line);
    } else if (number == 1) {
      if (line.find_first_not_of("|-: ") != std::string_view::npos) return {.head = {}, .rows = {}};
    } else {
      std::vector<Cell> row;
      for (const std::string& cell : cells_of(line))
        row.push_back({.html = escaped(cell),
                       .is_number = is_number(cell),
                       .style_class = cell.size() > 40 ? "wrap" : ""});
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::string media_html(const RecordedSummaries& found) {
  std::string text;
  std::size_t bytes = 0, left_out = 0;
  if (found.pictures.empty() && found.sounds.empty() && found.texts.empty())
    return missing("No pictures were recorded: summary.inputs, filters and attention record them.");
  if (!found.pictures.empty()) text += "<div class=\"sheets\">\n";
  for (const PictureSeries& one : found.pictures) {
    const std::size_t size = one.first.png.size() + one.last.png.size();
    if (bytes + size > kMostBytes) {
      ++left_out;
      continue;
    }
    bytes += size;
    if (one.first_step < one.last_step) text += figure_of(one.tag, one.first_step, one.first);
    text += figure_of(one.tag, one.last_step, one.last);
  }
  if (!found.pictures.empty()) text += "</div>\n" + left_out_note(left_out, "Pictures");
  return text + sounds_html(found.sounds, bytes) + texts_html(found.texts);
}

}  // namespace lockstep::report
