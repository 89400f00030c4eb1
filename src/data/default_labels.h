// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels that a reader gives where nobody asks for them: the last column of csv, the folders of images.
#pragma once

#include <string>

#include "config/node.h"

namespace lockstep {

/// The options of an input or target next to data.targets: an option that would read labels by default is off
/// where none is written.
Node without_default_labels(Node options, const std::string& format);

}  // namespace lockstep
