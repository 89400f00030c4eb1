// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep events --export`: the values of event files as a table, for other programs.
#pragma once

#include <string>

namespace lockstep {

/// csv: the numbers, a line each, under "run,tag,step,wall_time,value". jsonl: an object for each value, also
/// for histograms, tensors, pictures and sounds (the last two without their contents). `run` is the folder of
/// the file relative to `target`, empty for `target` itself. What a resumed run has made void is left out.
/// `tags`: patterns, separated by commas; empty: all. `output`: a file, replaced atomically, or "-".
///
/// Returns the exit code 0. Throws Error(data), and writes nothing, for a damaged record, if there is no
/// event file, and if no tag matches; Error(config) for a format that there is not, Error(output).
int export_events(const std::string& target, const std::string& format, const std::string& tags,
                  const std::string& output);

}  // namespace lockstep
