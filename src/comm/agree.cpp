// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/agree.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "core/cpu.h"
#include "core/error.h"
#include "core/message_lines.h"
#include "core/nested_error.h"

namespace lockstep {

namespace {

struct Status {
  std::int32_t failed = 0, kind = 0;
  std::uint64_t text_bytes = 0;
};

// The texts what_happened, where, advice and host, each with a terminating zero byte.
std::string packed(const Error& error) {
  std::string text;
  for (const std::string& part : {error.what_happened(), error.where(), error.advice(), host_name()}) {
    text += part.substr(0, part.find('\0'));
    text.push_back('\0');
  }
  return text;
}

std::string next(const char*& at) {
  std::string text(at);
  at += text.size() + 1;
  return text;
}

}  // namespace

void agree(Communicator& communicator, FunctionRef<void()> body, const char* what) {
  std::optional<Error> error;
  std::exception_ptr cause;
  try {
    body();
  } catch (const Error& caught) {
    error = caught;
    cause = cause_of(caught);
  } catch (const std::bad_alloc&) {
    error.emplace(ErrorKind::device, fmt::format("out of memory ({})", what), "",
                  "Use a machine with more memory, or fewer ranks on it.");
  } catch (const std::exception& caught) {
    error.emplace(ErrorKind::bug, caught.what());
    cause = std::current_exception();
  } catch (...) {
    error.emplace(ErrorKind::bug, "an exception of unknown type");
    cause = std::current_exception();
  }
  if (communicator.size() == 1) {
    if (error) throw_with_cause(*error, cause);
    return;
  }

  Status mine;
  std::string text;
  if (error) {
    text = packed(*error);
    mine = {1, static_cast<std::int32_t>(error->kind()), text.size()};
  }
  std::vector<Status> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(&mine, sizeof(Status), all.data(), what);
  const auto failed =
      std::find_if(all.begin(), all.end(), [](const Status& status) { return status.failed != 0; });
  if (failed == all.end()) return;

  const int rank = static_cast<int>(failed - all.begin());
  text.resize(failed->text_bytes);
  communicator.broadcast(text.data(), text.size(), rank, what);
  const char* at = text.c_str();
  std::string what_happened = next(at);
  const std::string where = next(at), advice = next(at), host = next(at);
  const bool everywhere =
      std::all_of(all.begin(), all.end(), [](const Status& status) { return status.failed != 0; });
  if (!everywhere) what_happened += fmt::format(" (on rank {}, host {})", rank, host);
  throw_with_cause(error_of_lines(static_cast<ErrorKind>(failed->kind), what_happened, where, advice), cause);
}

}  // namespace lockstep
