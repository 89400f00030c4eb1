// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/option.h"

#include <algorithm>

namespace lockstep {

void set_member(bool& member, const Params& params, const ParamSpec& option) {
  member = params.boolean(option.name);
}
void set_member(int& member, const Params& params, const ParamSpec& option) {
  member = static_cast<int>(params.integer(option.name));
}
void set_member(std::int64_t& member, const Params& params, const ParamSpec& option) {
  member = params.integer(option.name);
}
void set_member(float& member, const Params& params, const ParamSpec& option) {
  member = static_cast<float>(params.real(option.name));
}
void set_member(double& member, const Params& params, const ParamSpec& option) {
  member = params.real(option.name);
}
void set_member(std::string& member, const Params& params, const ParamSpec& option) {
  member = params.string(option.name);
}
void set_member(std::vector<std::int64_t>& member, const Params& params, const ParamSpec& option) {
  member = params.integers(option.name);
}
void set_member(std::vector<double>& member, const Params& params, const ParamSpec& option) {
  member = params.reals(option.name);
}
void set_member(std::vector<std::string>& member, const Params& params, const ParamSpec& option) {
  member = params.strings(option.name);
}
void set_member(Node& member, const Params& params, const ParamSpec& option) {
  member = params.node(option.name);
}

int choice_index(const Params& params, const ParamSpec& option) {
  const std::vector<std::string_view> choices = option.range.choices();
  const auto found = std::ranges::find(choices, params.string(option.name));
  LOCKSTEP_CHECK(found != choices.end(), "'{}' has no choices", option.name);
  return static_cast<int>(found - choices.begin());
}

bool is_second_choice(const Params& params, const ParamSpec& option) {
  return choice_index(params, option) == 1;
}

}  // namespace lockstep
