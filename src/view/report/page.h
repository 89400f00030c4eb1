// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The page that reports have in common: one HTML file without any request to the network. Styles and script
// are page.css and page.js, compiled in.
#pragma once

#include <string>
#include <vector>

#include "view/report/html.h"

namespace lockstep::report {

struct Page {
  std::string title, badge;  ///< badge: HTML beside the title
  std::string subtitle;      ///< HTML
  std::vector<Section> sections;
  std::string data;  ///< JSON for the script: charts_json()
};

std::string html_of(const Page& page);

/// The contents of page.css and page.js.
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace lockstep::report
