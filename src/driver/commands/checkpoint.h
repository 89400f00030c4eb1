// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint list|verify|diff|average|export`. Single-process commands.
#pragma once

#include <cstdio>
#include <string>

namespace lockstep {

/// The commands with their output to `out`, for tests. They return the exit code and throw Error for files
/// that cannot be read or written.
int list_checkpoints(const std::string& run_dir, bool verify, bool json, std::FILE* out);
/// Returns 4 if anything is damaged.
int verify_checkpoints(const std::string& path, std::FILE* out);
/// Returns 1 if a bit differs.
int diff_checkpoints(const std::string& first, const std::string& second, bool json, std::FILE* out,
                     std::string_view checkpoint = {});

}  // namespace lockstep
