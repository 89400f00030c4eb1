// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a job of a run ends that a rank ends for all (core/last_words.h): the message goes to lockstep.log, and
// its first line, as the reason, to status.json. Any rank may be the one that speaks: the chief may be the
// one that hangs. A rank that does not see the run directory says so.
#pragma once

#include <string>

namespace lockstep {

/// Registers the run directory. `job_begin`: JobRecord::begin of the job, by which its status is known.
void begin_run_last_words(std::string run_dir, double job_begin);
/// When the job has ended by itself.
void end_run_last_words();

/// For an error that all ranks have, which ends no rank of them by force: `text` as standard error has it. On
/// the chief. Never throws.
void note_error_in_log(const std::string& run_dir, const std::string& text) noexcept;

/// True if the status file of the run directory says that this job has ended: another rank has written that.
bool is_job_ended(const std::string& run_dir, double job_begin);

}  // namespace lockstep
