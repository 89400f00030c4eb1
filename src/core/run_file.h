// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the files that the program keeps in a run directory and appends to or rewrites in place. Whoever may
// write into the folder could put a symbolic link or a FIFO there: a link is never followed, so that nothing
// outside the run directory is truncated or extended, and a FIFO never blocks.
#pragma once

#include <string>

#include "core/error.h"

namespace lockstep {

/// open(2) with `flags` (O_WRONLY | O_CREAT | O_APPEND, ...) for a regular file; mode 0666. For O_RDONLY a
/// symbolic link is followed. Returns an owned descriptor, or -1 with errno for the reasons of open(2).
/// Throws Error(kind) if the path is a symbolic link or not a regular file.
int open_run_file(const std::string& path, int flags, ErrorKind kind);

/// Makes the folder `name` in a run directory, with those on the way to it, unless they are there. Returns
/// its path. Throws Error(kind) if one of them cannot be made, is no folder, or is a symbolic link: what is
/// written there would lie outside of the run directory.
std::string make_run_folder(const std::string& run_dir, const std::string& name, ErrorKind kind);

}  // namespace lockstep
