// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/cpu.h"
#include "core/device.h"
#include "driver/version.h"

namespace lockstep {

std::vector<InfoRow> build_info() {
  return {
      {"lockstep", std::string(kVersion)},
      {"build", std::string(kBuild)},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"host", host_name()},
      {"processor", processor_name()},
      {"instruction set",
       fmt::format("{} (own kernels; the environment variable LOCKSTEP_ISA caps it)", name_of(isa_level()))},
      {"cores", fmt::format("{} may be used by this process", available_cores())},
      {"devices", cpu_device().name()},
  };
}

std::string info_text(std::span<const InfoRow> rows) {
  std::size_t width = 0;
  for (const InfoRow& row : rows) width = std::max(width, row.first.size());
  std::string text;
  for (const InfoRow& row : rows) text += fmt::format("{:<{}}  {}\n", row.first, width, row.second);
  return text;
}

int command_info(const CommandLine&) {
  fmt::print("{}", info_text(build_info()));
  return 0;
}

}  // namespace lockstep
