// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep inspect`: the contents of a checkpoint.
#pragma once

#include <cstdio>
#include <string>

namespace lockstep {

struct InspectArguments {
  std::string target;      ///< a checkpoint, or a run directory
  std::string checkpoint;  ///< of a run directory: "last" or "best"; empty: the newest one
  bool digest = false, json = false;
};

/// Prints header, tensors, shapes and statistics of the checkpoint `path` (a file, or a run directory for its
/// newest intact one) to `out`, as a table or, with `json`, as one JSON object. With `digest`, only the 32
/// hexadecimal digits of its digest, after the whole file was verified. Returns the exit code 0; throws
/// Error(checkpoint).
///
/// Statistics are computed in double and in order, over all values that are not NaN; NaNs are counted. JSON
/// has null where a number is not finite or there is no value.
int inspect_checkpoint(const std::string& path, bool digest, bool json, std::FILE* out,
                       std::string_view checkpoint = {});

}  // namespace lockstep
