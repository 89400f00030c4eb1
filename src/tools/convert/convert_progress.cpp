// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/convert_progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "core/log.h"
#include "core/process_environment.h"
#include "session/progress.h"
#include "session/terminal.h"

namespace lockstep {

std::string convert_progress_line(std::int64_t samples, std::int64_t total, double share, double bytes,
                                  double seconds) {
  return fmt::format("converted {}/{} samples ({})  {:.1f} MB/s  left {}", samples, total,
                     format_share(share), seconds > 0 ? bytes * 1e-6 / seconds : 0.0,
                     format_duration(share > 0 ? seconds * (1 - share) / share : -1));
}

ConvertProgress::ConvertProgress(std::int64_t samples, std::int64_t sample_bytes, bool verify, bool quiet)
    : samples_(samples), sample_bytes_(sample_bytes), verify_(verify), quiet_(quiet) {
  width_ = terminal_width_of(stderr, process_environment);
  next_ = width_ ? Progress::kRedrawSeconds : Progress::kLineSeconds;
}

void ConvertProgress::update(std::int64_t written, std::int64_t verified, std::int64_t kept) {
  if (quiet_ || timer_.seconds() < next_) return;
  next_ = timer_.seconds() + (width_ ? Progress::kRedrawSeconds : Progress::kLineSeconds);
  const double work = static_cast<double>(samples_ - kept) * (verify_ ? 2 : 1);
  const double share = work > 0 ? static_cast<double>(written + verified) / work : 1;
  const std::string line =
      convert_progress_line(written + kept, samples_, share,
                            static_cast<double>(written) * static_cast<double>(sample_bytes_), seconds());
  if (!width_) return log_info("{}", line);
  const auto width = static_cast<std::size_t>(width_() > 1 ? width_() - 1 : 1);
  std::fprintf(stderr, "\r\x1b[K%s", line.substr(0, width).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ConvertProgress::clear() {
  if (drawn_) std::fprintf(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace lockstep
