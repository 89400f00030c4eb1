// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For a command that runs many jobs in one process, such as the trials of a sweep: what is odd about one is
// odd about all.
#pragma once

namespace lockstep {

/// From now on standard error shows a warning once, however often it is logged with the same text. Log files
/// get all of them.
void show_each_warning_once();

}  // namespace lockstep
