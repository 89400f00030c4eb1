// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of data files on this node, which are opened instead of the files (data.stage_to). A map of this
// process: everything that opens data files asks it, and messages go on naming the files themselves.
//
// Why a small map and no virtual file system: folders, patterns, times of files, messages and the fingerprint
// stay those of the originals, and data files are opened in four places only: InputFile, ByteSource, images,
// HDF5. The name of a copy is a digest of the path, so the map is a sorted list of 16-byte digests, also for
// millions of files. HDF5 opens other files next to the one that names them, past the map, so files that do
// are refused. Only training copies: evaluations and predictions read the files once.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// The name of a copy, below the folder of all copies: "3f/90c1...". It depends on `path` alone.
std::string staged_name(const std::string& path);

/// From now on `folder`/staged_name(path) is opened for each of `paths`. Called before any of them is opened.
void use_staged_files(const std::string& folder, const std::vector<std::string>& paths);
/// From now on the files themselves are opened.
void forget_staged_files();

/// What to open for `path`: its copy, or `path` itself. Any thread.
std::string path_to_open(const std::string& path);
/// A text for messages about `path` that cannot be opened or read: " (its copy /tmp/...)", or nothing.
std::string staged_note(const std::string& path);

}  // namespace lockstep
