// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep inspect`: what a checkpoint holds.
#pragma once

#include <cstdio>
#include <string>

namespace lockstep {

/// Prints header, tensors, shapes and statistics of the checkpoint `path` (a file, or a run directory for its
/// newest intact one) to `out`, as a table or, with `json`, as one JSON object. With `digest`, only the 32
/// hexadecimal digits of its digest, after the whole file was verified. Returns the exit code 0; throws
/// Error(checkpoint).
///
/// Statistics are in double, over the values that are not NaN (those are counted), one after the other;
/// infinities count as values. JSON has null where a number is not finite or there is no value.
int inspect_checkpoint(const std::string& path, bool digest, bool json, std::FILE* out);

}  // namespace lockstep
