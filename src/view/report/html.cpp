// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/html.h"

#include <fmt/format.h>

#include <cmath>

#include "core/shown_text.h"
#include "io/json.h"
#include "session/number_text.h"

namespace lockstep::report {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_bytes(text.substr(i));
    const char c = text[i];
    if (length == 0 || (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
      out += kReplacement;
    } else if (length > 1) {
      out += text.substr(i, length);
    } else {
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default:
          out += c;
      }
    }
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string json_for_script(std::string json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else
      out += c;
  }
  return out;
}

std::string json_text(std::string_view text) { return Json(text).dump(-1, true); }

std::string json_number(double value) { return std::isfinite(value) ? number_text(value) : "null"; }

std::string json_numbers(std::span<const double> values) {
  std::string text = "[";
  for (const double value : values) {
    if (text.size() > 1) text += ',';
    text += json_number(value);
  }
  return text + "]";
}

Cell text_cell(std::string_view text) { return {escaped(text)}; }

std::string number_html(double value) {
  if (!std::isfinite(value)) return "–";
  return number_text(value);
}

Cell number_cell(double value) { return {number_html(value), true}; }

std::string grouped(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

Cell count_cell(std::int64_t value) { return {grouped(value), true}; }

std::string html_of(const Table& table) {
  const auto is_number = [&](std::size_t column) {
    for (const auto& row : table.rows)
      if (column < row.size() && row[column].is_number) return true;
    return false;
  };
  std::string text =
      fmt::format("<div class=\"scroll\"><table class=\"{}\">\n<thead><tr>", table.style_class);
  for (std::size_t i = 0; i < table.head.size(); ++i)
    text += fmt::format("<th scope=\"col\"{}>{}</th>", is_number(i) ? " class=\"n\"" : "",
                        escaped(table.head[i]));
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string row_class = i < table.row_classes.size() ? table.row_classes[i] : "";
    text += row_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row_class);
    for (const Cell& cell : table.rows[i]) {
      std::string classes = cell.is_number ? "n" : "";
      if (!cell.style_class.empty())
        classes += fmt::format("{}{}", classes.empty() ? "" : " ", cell.style_class);
      text += classes.empty() ? fmt::format("<td>{}</td>", cell.html)
                              : fmt::format("<td class=\"{}\">{}</td>", classes, cell.html);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string missing(std::string_view text) {
  return fmt::format("<p class=\"missing\">{}</p>\n", escaped(text));
}

std::string facts(std::initializer_list<std::pair<std::string_view, std::string>> list) {
  std::string text = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : list)
    if (!value.empty()) text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), value);
  return text + "</dl>\n";
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
    };
    const unsigned three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (std::size_t digit = 0; digit < 4; ++digit)
      text += i + digit > bytes.size() ? '=' : kDigits[three >> (18 - 6 * digit) & 63];
  }
  return text;
}

}  // namespace lockstep::report
