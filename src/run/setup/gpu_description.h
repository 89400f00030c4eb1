// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// With what GPU, libraries and algorithms a run was computed: in short in each checkpoint, in full in
// configs/gpu.txt of the run's directory. A job that continues the run elsewhere says what differs, because
// its bits may.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/startup_check.h"

namespace lockstep {

/// The fields as a text: a name per line, and below it the lines of its text, indented. And back.
std::string text_of_fields(std::span<const NamedText> fields);
std::vector<NamedText> fields_of_text(const std::string& text);

/// The fields in short, a line each: "cuBLAS: 13.1.0"; of a text of many lines, how many, and a hash of them.
std::string gpu_lines(std::span<const NamedText> fields);

/// What differs between two descriptions, a line each: "cuBLAS: 13.1.0 before, 13.2.0 now". Of a text of
/// many lines, the first that differs.
std::string gpu_changes(std::span<const NamedText> before, std::span<const NamedText> now);

/// A warning for each line of Backend::wrong_algorithms() that is not in `before`.
void warn_of_wrong_algorithms(const std::string& now, const std::string& before);

/// Warns, on the chief, if `now` is not what the last job of the run on GPUs had, and keeps it for the next
/// one. Nothing if `now` is empty: this job has no GPU. On-disk names: do not change.
void keep_gpu_description(const std::string& run_dir, std::span<const NamedText> now);

}  // namespace lockstep
