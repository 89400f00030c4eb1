// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/backend.h"

#include <algorithm>

namespace lockstep {

namespace {
std::vector<Backend*>& registered() {
  static std::vector<Backend*> list;
  return list;
}
}  // namespace

void register_backend(Backend& backend) { registered().push_back(&backend); }
std::span<Backend* const> backends() { return registered(); }

Backend* find_backend(std::string_view name) {
  const auto found =
      std::ranges::find_if(registered(), [&](const Backend* one) { return one->name() == name; });
  return found == registered().end() ? nullptr : *found;
}

}  // namespace lockstep
