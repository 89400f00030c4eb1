// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/program.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "comm/environment.h"
#include "config/error_text.h"
#include "core/error.h"
#include "core/shown_text.h"
#include "driver/commands/command_table.h"
#include "io/print_result.h"

namespace lockstep {

namespace {

constexpr auto kChiefEndsFirst = std::chrono::seconds(3);

void print_text(const std::string& text) {
  std::fflush(stdout);
  // Not fmt::print, which throws when standard error is closed: the exit code must still be the right one.
  std::fprintf(stderr, "%s\n", text.c_str());
}

void print_error(const std::string& message) { print_text("error: " + shown_message(message)); }

/// Whatever failed because of it: the message and the code are the same in every command.
int output_failed() {
  std::fprintf(stderr, "error: %s\n  %s\n", kOutputFailed.data(), kOutputAdvice.data());
  return exit_code(ErrorKind::output);
}

/// A smaller batch helps the commands that run a net alone.
const char* memory_advice(int argc, const char* const* argv) {
  for (const std::string_view command :
       {"train", "evaluate", "experiment", "watch", "lr-find", "sweep", "replay"})
    if (argc > 1 && argv[1] == command)
      return "Use a smaller train.batch_size, more ranks, or a machine with more memory.";
  return "Use a machine with more memory, or give a part of what is read.";
}

/// Returns the exit code.
int run_command_line(const CommandLine& line) {
  if (line.call != nullptr) return line.call->run();
  if (launcher_rank_hint() == 0) fmt::print("{}", line.text);
  return 0;
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  try {
    const int code = run_command_line(parse_command_line(command_table(), argc, argv));
    // Results go to standard output: a full disk or a closed pipe must not look like success.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return output_failed();
    return code;
  } catch (const Error& error) {
    const bool same_on_all_ranks = error.kind() == ErrorKind::usage || error.kind() == ErrorKind::config;
    const int rank = launcher_rank_hint();
    if (!same_on_all_ranks || rank == 0) {
      print_text(error_text(error, ""));
    } else if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) {
      // mpirun ends the others when the chief ends, and might drop its message if another rank ended first. A
      // rank that is still here has an error of its own, such as a file that its host does not see. srun ends
      // nobody: there the chief alone speaks.
      std::signal(SIGTERM, SIG_DFL);
      std::this_thread::sleep_for(kChiefEndsFirst);
      print_text(error_text(error, fmt::format("rank {}: ", rank)));
    }
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    print_error(fmt::format("out of memory\n  {}", memory_advice(argc, argv)));
    return 1;
  } catch (const std::length_error&) {
    print_error(
        "a size is larger than a process can address\n  Look for a number in the configuration or the data "
        "that is too large.");
    return 1;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return output_failed();  // what fmt::print throws
    print_text("error: " + shown_text(shown_message(error.what())));
    return 1;
  }
}

}  // namespace lockstep
