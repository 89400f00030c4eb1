// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The page that reports have in common: one HTML file without any request to the network. Styles and script
// are page.css and page.js, compiled in.
//
// Why no plotting library: a report must work without a network, on paper and years later. Kept libraries for
// browsers are 200 KB to 4.5 MB and draw nothing where scripts are off. So the program writes every picture
// as SVG, and page.js (17 KB with its comments) draws the curves anew for zoom, smoothing, axes and read-out.
// A content security policy in the page forbids any request. A headless Chromium runs the page in the tests,
// where there is one. Predictions are computed in the process of the report, on one rank and without MPI.
#pragma once

#include <string>
#include <vector>

#include "view/report/html.h"

namespace lockstep::report {

struct Page {
  std::string title, badge;  ///< badge: HTML next to the title
  std::string subtitle;      ///< HTML
  std::vector<Section> sections;
  std::string data;  ///< JSON for the script: charts_json()
};

std::string html_of(const Page& page);

/// The contents of page.css and page.js.
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace lockstep::report
