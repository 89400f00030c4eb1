// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line/command_options.h"

#include <CLI/CLI.hpp>

namespace lockstep {

CommandOption& CommandOption::required() {
  option_->required();
  return *this;
}

CommandOption& CommandOption::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

CommandOption& CommandOption::check(const ValueCheck& check) {
  option_->check(check);
  return *this;
}

CommandOption& CommandOption::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

CommandOption& CommandOption::from_to_values(int least, int most) {
  option_->expected(least, most);
  return *this;
}

CommandOption& CommandOption::delimiter(char character) {
  option_->delimiter(character);
  return *this;
}

CommandOption& CommandOption::needs(const CommandOption& other) {
  option_->needs(other.option_);
  return *this;
}

CommandOption CommandOptions::add(const std::string& name, std::string& value, const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, std::int64_t& value, const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, std::uint64_t& value, const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, int& value, const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, double& value, const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, std::optional<std::int64_t>& value,
                                  const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, std::optional<int>& value,
                                  const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, std::optional<double>& value,
                                  const std::string& help) {
  return CommandOption(command_.add_option(name, value, help));
}

CommandOption CommandOptions::add(const std::string& name, std::vector<std::string>& values,
                                  const std::string& help) {
  return CommandOption(command_.add_option(name, values, help));
}

CommandOption CommandOptions::add(const std::string& name, std::vector<std::int64_t>& values,
                                  const std::string& help) {
  return CommandOption(command_.add_option(name, values, help));
}

CommandOption CommandOptions::add_with_optional_value(const std::string& name,
                                                      std::optional<std::string>& value,
                                                      const std::string& help) {
  return CommandOption(command_
                           .add_option_function<std::string>(
                               name, [&value](const std::string& text) { value = text; }, help)
                           ->expected(0, 1));
}

void CommandOptions::add_flag(const std::string& name, bool& value, const std::string& help) {
  command_.add_flag(name, value, help);
}

void CommandOptions::add_flag_off(const std::string& name, bool& value, const std::string& help) {
  command_.add_flag_callback(
      name, [&value] { value = false; }, help);
}

bool CommandOptions::given(const std::string& name) const { return command_.count(name) > 0; }

}  // namespace lockstep
