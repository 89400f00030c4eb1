// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The reference of all options as Markdown, printed from the tables that check them. docs/config.md is its
// output (scripts/update_docs.sh), and a test compares the two.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/params.h"

namespace lockstep {

/// One table in addition to the sections: a layer, an optimizer, a reader ...
struct ReferenceSection {
  std::string title;  ///< a heading: "Layer conv2d"
  std::string help;
  std::span<const ParamSpec> table;
};

/// The tables of the rooms below: readers, layers, losses, metrics, optimizers, schedules, hooks.
std::vector<ReferenceSection> reference_sections();

/// The sections first, then `others`, in their order.
std::string config_reference(std::span<const ReferenceSection> others = {});

}  // namespace lockstep
