// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What MetricsLog and EventWriter keep while a disk is full: bytes that the file has not taken yet, and the
// steps of what waits or is lost.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/log.h"

namespace lockstep {

/// Writes the bytes and removes from them what the file has taken. False, with errno: some are left, which
/// the next call continues with.
inline bool write_and_remove(int descriptor, std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<std::size_t>(written);
  }
  const int error = errno;
  const bool all = done == bytes.size();
  bytes.erase(0, done);
  errno = error;
  return all;
}

/// A disk has no room now, and may have some later.
inline bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

/// A number of records, and the first and the last of their steps.
struct RecordSteps {
  std::int64_t count = 0, first = 0, last = 0;

  void add(std::int64_t step) { add({1, step, step}); }
  void add(const RecordSteps& others) {
    if (others.count == 0) return;
    first = count == 0 ? others.first : std::min(first, others.first);
    last = count == 0 ? others.last : std::max(last, others.last);
    count += others.count;
  }
  /// "3 records of steps 10 to 30", "1 record of step 10".
  std::string text(const char* what) const {
    if (count == 1) return fmt::format("1 {} of step {}", what, first);
    return fmt::format("{} {}s of steps {} to {}", count, what, first, last);
  }
};

/// `what`: "events" or "metrics".
inline void warn_that_they_wait(const Error& reason, const char* what) {
  log_warning("{}: {}; {} wait in memory until it takes them again, the run continues", reason.where(),
              reason.what_happened(), what);
}

/// `lost`: what is missing, records that are called `one`.
inline void note_that_they_are_written(const std::string& path, const char* what, const RecordSteps& lost,
                                       const char* one) {
  if (lost.count == 0)
    log_info("{}: {} are written again; none is missing", path, what);
  else
    log_warning("{}: {} are written again; missing: {}", path, what, lost.text(one));
}

}  // namespace lockstep
