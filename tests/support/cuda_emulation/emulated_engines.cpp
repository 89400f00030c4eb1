// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "emulated_engines.h"

#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "core/error.h"

namespace lockstep::emulation {

namespace {

constexpr std::array<std::pair<std::string_view, Defect>, 7> kDefects{
    {{"edge_column", Defect::edge_column},
     {"uneven_padding", Defect::uneven_padding},
     {"lost_part", Defect::lost_part},
     {"unwritten", Defect::unwritten},
     {"accumulates", Defect::accumulates},
     {"wrong_bias", Defect::wrong_bias},
     {"rounded", Defect::rounded}}};

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

std::string name_of_the_right_one(const std::string& rank) {
  const std::string name = text_of("LOCKSTEP_EMULATED_ALGORITHM");
  if (name.empty()) return "plain loops";
  return name == "by rank" && !rank.empty() ? "that of rank " + rank : name;
}

}  // namespace

std::vector<Engine> engines() {
  const std::string rank = text_of("OMPI_COMM_WORLD_RANK"),
                    defective = text_of("LOCKSTEP_EMULATED_DEFECTIVE_RANK");
  std::vector<Engine> all;
  bool has_right_one = true;
  std::istringstream names(defective.empty() || defective == rank ? text_of("LOCKSTEP_EMULATED_DEFECTS")
                                                                  : "");
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = std::ranges::find(kDefects, name, &std::pair<std::string_view, Defect>::first);
    if (name == "only")
      has_right_one = false;
    else if (found != kDefects.end())
      all.push_back({"loops with the defect " + name, found->second});
    else
      LOCKSTEP_CHECK(false, "LOCKSTEP_EMULATED_DEFECTS: '{}' is no defect", name);
  }
  if (has_right_one) all.push_back({name_of_the_right_one(rank)});
  return all;
}

}  // namespace lockstep::emulation
