// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files and folders that nobody has put among the data: hidden ones, and those that file managers, archives
// and notebooks leave. All readers of folders pass over them, and so does what looks into folders for people.
#pragma once

#include <string_view>

namespace lockstep {

/// `name`: of a file or folder, without those above it: .DS_Store, ._photo.png, .ipynb_checkpoints,
/// __MACOSX, Thumbs.db, desktop.ini, @eaDir.
bool is_left_over(std::string_view name);

}  // namespace lockstep
