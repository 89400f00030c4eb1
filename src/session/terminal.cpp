// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string_view>

namespace lockstep {

namespace {

constexpr int kUsualColumns = 80;

int columns_of(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

bool is_pipe(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
}

}  // namespace

std::function<int()> terminal_width_of(std::FILE* stream, FunctionRef<const char*(const char*)> get_env) {
  const char* terminal = get_env("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return {};
  const int own = fileno(stream);
  if (isatty(own) == 1) return [own] { return columns_of(own); };
  if (get_env("OMPI_COMM_WORLD_RANK") == nullptr || !is_pipe(own)) return {};
  const char* tagged = get_env("OMPI_MCA_orte_tag_output");
  if (tagged != nullptr && std::string_view(tagged) != "0" && std::string_view(tagged) != "false") return {};
  // Not a controlling terminal of this process, and nothing is written through it.
  const int launchers =
      open(fmt::format("/proc/{}/fd/2", getppid()).c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (launchers < 0) return {};
  const std::shared_ptr<const int> descriptor(new int(launchers), [](const int* number) {
    close(*number);
    delete number;
  });
  if (isatty(launchers) != 1) return {};
  return [descriptor] { return columns_of(*descriptor); };
}

}  // namespace lockstep
