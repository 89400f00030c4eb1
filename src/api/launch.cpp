// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "comm/launch_check.h"
#include "comm/left_segments.h"
#include "comm/share_text.h"
#include "comm/shared_error.h"
#include "config/error_text.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/last_words.h"
#include "core/log.h"

namespace lockstep {

namespace {

/// Delay of messages of ranks other than 0: if the chief has the same error, only its message appears.
constexpr auto kChiefSpeaksFirst = std::chrono::seconds(2);

[[noreturn]] void print_and_abort(CommEnvironment& environment, const Error& error) {
  const int rank = environment.world().rank();
  if (rank != 0) std::this_thread::sleep_for(kChiefSpeaksFirst);
  std::fflush(stdout);
  say_last_words(error_text(error, rank == 0 ? std::string() : fmt::format("rank {}: ", rank)) + "\n",
                 exit_code(error.kind()), kLastWordsSeconds);
  environment.abort(exit_code(error.kind()));
}

/// All ranks. The first rank of each host looks.
void tell_of_left_segments(CommEnvironment& environment) {
  const std::vector<std::string>& hosts = environment.hosts();
  const auto rank = static_cast<std::size_t>(environment.world().rank());
  std::string found;
  if (std::ranges::find(hosts, hosts[rank]) == hosts.begin() + environment.world().rank())
    if (const auto segments = left_segments(segment_folders(process_environment)); !segments.empty())
      found = segments_text(segments);
  const std::vector<std::string> all =
      gather_texts(environment.world(), found, "what killed processes have left");
  for (std::size_t other = 0; rank == 0 && other < all.size(); ++other)
    if (!all[other].empty())
      log_info("killed processes have left {} (on {}; lockstep doctor --clean removes them)", all[other],
               hosts[other]);
}

}  // namespace

int run_on_ranks(const CommOptions& options, bool quiet, FunctionRef<int(CommEnvironment&)> body) {
  CommEnvironment environment(options);
  Communicator& world = environment.world();
  set_fault_rank(world.rank());
  configure_log(world.size() > 1 ? world.rank() : -1, quiet ? LogLevel::warning : LogLevel::info);
  if (world.rank() == 0 && !environment.start_warning().empty())
    log_warning("{}", environment.start_warning());
  const bool alone = world.size() == 1;
  try {
    for (const std::string& warning : launch_warnings(world))
      if (world.rank() == 0) log_warning("{}", warning);
    if (!quiet) tell_of_left_segments(environment);
    const int code = body(environment);
    environment.finalize();
    return code;
  } catch (const SharedError& error) {
    if (world.rank() == 0) std::fprintf(stderr, "%s\n", error_text(error).c_str());
    environment.finalize();
    return exit_code(error.kind());
  } catch (const Error& error) {
    if (!alone) print_and_abort(environment, error);
    environment.finalize();
    throw;
  } catch (const std::exception& error) {
    if (!alone) print_and_abort(environment, Error(ErrorKind::bug, error.what()));
    environment.finalize();
    throw;
  }
}

}  // namespace lockstep
