// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/page.h"

#include <fmt/format.h>

#include "core/version.h"

namespace lockstep::report {

std::string html_of(const Page& page) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Nothing is loaded from anywhere: what the browser is told to enforce.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src "
      "'unsafe-inline'; img-src data:; media-src data:\">\n"
      "<meta name=\"generator\" content=\"lockstep {}\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
      kVersion, escaped(page.title), kPageStyle);
  text += fmt::format(
      "<header><div class=\"top\"><h1>{}</h1>{}<button id=\"theme\" type=\"button\" "
      "hidden>Theme</button></div>\n<p class=\"subtitle\">{}</p>\n",
      escaped(page.title), page.badge, page.subtitle);
  text += "<nav aria-label=\"sections\">";
  for (const Section& section : page.sections)
    text += fmt::format("<a href=\"#{}\">{}</a>", section.id, escaped(section.title));
  text += "</nav></header>\n<main>\n";
  for (const Section& section : page.sections)
    text += fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", section.id, escaped(section.title),
                        section.body);
  text += fmt::format(
      "</main>\n<footer>Made by lockstep {}.</footer>\n<script type=\"application/json\" "
      "id=\"data\">{}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
      kVersion, json_for_script(page.data), kPageScript);
  return text;
}

}  // namespace lockstep::report
