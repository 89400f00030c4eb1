// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep checkpoint list|verify|diff|average|export`. Single-process commands.
#pragma once

#include <cstdio>
#include <string>

namespace lockstep {

/// The work behind the commands, for tests: what they print goes to `out`. They return the exit code and
/// throw Error for what cannot be read or written.
int list_checkpoints(const std::string& run_dir, bool verify, bool json, std::FILE* out);
/// 4 if anything is damaged.
int verify_checkpoints(const std::string& path, std::FILE* out);
/// 1 if a bit differs.
int diff_checkpoints(const std::string& first, const std::string& second, bool json, std::FILE* out);

}  // namespace lockstep
