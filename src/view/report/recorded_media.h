// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pictures, sounds and texts of event files as HTML. What is too large for a page is left out, and said.
#pragma once

#include <string>
#include <string_view>

#include "view/report/html.h"
#include "view/report/recorded_summaries.h"

namespace lockstep::report {

std::string media_html(const RecordedSummaries& found);

/// A text of Markdown that is a table, without its emphasis and links; no rows: it is none.
Table table_of_markdown(std::string_view text);

}  // namespace lockstep::report
