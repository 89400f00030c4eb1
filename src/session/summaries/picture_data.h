// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pictures and texts as values of event files.
#pragma once

#include <string>

#include "io/png_file.h"
#include "io/summary_value.h"

namespace lockstep {

ImageData picture_data(const Picture& picture);
/// `markdown` for TensorBoard's page of texts.
SummaryValue text_value(std::string tag, std::string markdown);

}  // namespace lockstep
