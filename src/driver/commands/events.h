// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep events`: the contents of event files.
#pragma once

#include <cstdio>
#include <string>

namespace lockstep {

struct EventsArguments {
  std::string target;  ///< an event file, or a directory
  std::string tag;     ///< patterns, separated by commas; empty: all
  std::string format;  ///< of an export: csv or jsonl; empty: none
  std::string output = "-";
};

/// Prints one JSON object per line to `out` for every value in the event file `path`, or in all those in the
/// folder `path` and below it, in order of their names:
///
///   {"file":"eval/events.out.tfevents...","wall_time":1700000000.5,"step":200,"tag":"loss","value":0.25}
///
/// `file` is relative to a folder. NaN and infinities are null. Other values than scalars have a `kind`
/// ("histogram", "image" ...) in place of `value`. Prints only values whose tag matches `tag`, patterns that
/// are separated by commas. If `tag` is empty, it prints all values, and marks: {"file_version":...};
/// {"restart":true}, which says that values of this step and later in earlier files are void; {"stop":true},
/// {"checkpoint":PATH}, {"graph_bytes":N}, {"run_metadata":TAG}.
///
/// A truncated last record ends its file with a warning. Returns the exit code 0. Throws Error(data) for a
/// damaged record, after printing the records before it, and if there is no event file.
int print_events(const std::string& path, const std::string& tag, std::FILE* out);

}  // namespace lockstep
