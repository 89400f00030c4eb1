// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/launch.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "comm/launch_check.h"
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
