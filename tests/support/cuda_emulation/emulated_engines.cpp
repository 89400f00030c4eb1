// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "emulated_engines.h"

#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "pretended_time.h"

namespace lockstep::emulation {

namespace {

constexpr std::array<std::pair<std::string_view, Defect>, 8> kDefects{
    {{"edge_column", Defect::edge_column},
     {"uneven_padding", Defect::uneven_padding},
     {"lost_part", Defect::lost_part},
     {"unwritten", Defect::unwritten},
     {"accumulates", Defect::accumulates},
     {"wrong_bias", Defect::wrong_bias},
     {"rounded", Defect::rounded},
     {"coarse", Defect::coarse}}};

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

std::string name_of_the_right_one(const std::string& rank) {
  const std::string name = text_of("LOCKSTEP_EMULATED_ALGORITHM");
  if (name.empty()) return "plain loops";
  return name == "by rank" && !rank.empty() ? "that of rank " + rank : name;
}

/// Takes the time off "name:300/950".
double take_milliseconds(std::string& name, const std::string& rank) {
  const std::size_t colon = name.find(':'), slash = name.find('/');
  if (colon == std::string::npos) return 0;
  const bool second = slash != std::string::npos && !rank.empty() && rank != "0";
  const double time = std::stod(name.substr((second ? slash : colon) + 1));
  name.resize(colon);
  return time;
}

std::vector<Engine> right_engines(const std::string& rank) {
  std::vector<Engine> all;
  std::istringstream names(text_of("LOCKSTEP_EMULATED_ENGINES"));
  for (std::string name; std::getline(names, name, ',');) {
    const double time = take_milliseconds(name, rank);
    all.push_back({name, name == "coarse" ? Defect::coarse : Defect::none, time});
  }
  if (all.empty()) all.push_back({name_of_the_right_one(rank)});
  return all;
}

}  // namespace

std::string version() {
  const std::string text = text_of("LOCKSTEP_EMULATED_VERSION");
  return text.empty() ? "" : " " + text;
}

Clock::duration& pretended_time() {
  static Clock::duration time{};
  return time;
}

void pretend(const Engine& engine) {
  pretended_time() += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double, std::milli>(engine.milliseconds));
}

std::vector<Engine> engines() {
  const std::string rank = text_of("OMPI_COMM_WORLD_RANK"),
                    defective = text_of("LOCKSTEP_EMULATED_DEFECTIVE_RANK");
  std::vector<Engine> all;
  bool has_right_one = true;
  std::istringstream names(defective.empty() || defective == rank ? text_of("LOCKSTEP_EMULATED_DEFECTS")
                                                                  : "");
  for (std::string name; std::getline(names, name, ',');) {
    const double time = take_milliseconds(name, rank);
    const auto found = std::ranges::find(kDefects, name, &std::pair<std::string_view, Defect>::first);
    if (name == "only")
      has_right_one = false;
    else if (found != kDefects.end())
      all.push_back({"loops with the defect " + name, found->second, time});
    else
      LOCKSTEP_CHECK(false, "LOCKSTEP_EMULATED_DEFECTS: '{}' is no defect", name);
  }
  if (has_right_one)
    for (Engine& engine : right_engines(rank)) all.push_back(std::move(engine));
  return all;
}

}  // namespace lockstep::emulation
