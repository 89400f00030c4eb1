// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/host_names.h"

#include <array>
#include <cstring>

#include "core/cpu.h"

namespace lockstep {

std::vector<std::string> host_names(Communicator& communicator) {
  using Name = std::array<char, 64>;
  Name mine{};
  std::strncpy(mine.data(), host_name().c_str(), mine.size() - 1);
  std::vector<Name> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(mine.data(), mine.size(), all.data(), "names of the hosts");
  std::vector<std::string> names;
  for (const Name& name : all) names.emplace_back(name.data());
  return names;
}

}  // namespace lockstep
