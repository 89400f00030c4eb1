// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What section `summary` can switch on in addition to the numbers of each step: histograms, pictures. Each
// part is a hook with options of its own. To add one: a file in session/summaries/ with its entry, a line in
// the list of summary_part.cpp, a test and a line in docs/summaries.md.
//
//   summary:
//     weights: true                                       # with the part's defaults
//     activations: {layers: ["conv*"], every_steps: 50}
//
// A part reads what a step has computed. It changes no number of the training.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "config/table.h"
#include "session/summaries/summary_hook.h"

namespace lockstep {

struct SummaryPart {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<SummaryHook> (*make)(const Params& options);
  bool after_evaluation = false;  ///< it shows what evaluations find
};

/// A factory for SummaryPart::make: Part is constructed from Part::Options, whose members the table binds
/// (config/option.h), or from Params if it has none; and from Params, too, if it refuses some options.
template <typename Part>
std::unique_ptr<SummaryHook> make_summary(const Params& p) {
  if constexpr (requires { Part(p.as<typename Part::Options>(), p); })
    return std::make_unique<Part>(p.as<typename Part::Options>(), p);
  else if constexpr (requires { Part(p.as<typename Part::Options>()); })
    return std::make_unique<Part>(p.as<typename Part::Options>());
  else
    return std::make_unique<Part>(p);
}
/// Lockstep's own parts, then those that add() added.
Table<SummaryPart>& summary_parts();

/// A part that is switched on, with checked options.
struct SummarySpec {
  SummaryPart part;
  Params options;
  std::unique_ptr<SummaryHook> make() const { return part.make(options); }
};

/// `value`: what stands at the part's key. Nothing for null and false. Throws Error(config).
std::optional<SummarySpec> summary_spec(const SummaryPart& part, const Node& value);

}  // namespace lockstep
