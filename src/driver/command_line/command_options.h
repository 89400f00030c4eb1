// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of one command, bound to the members of its arguments.
//
//   options.add("--samples", arguments.samples, "Samples of each set to look
//   at").type_name("N").check(whole_number(1, 100));
//
// A member keeps its value if the option is not given. The parser behind it (CLI11) is known in this folder
// alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/command_line/value_check.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep {

/// What else is said of an option: each function returns the option.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption& required();
  /// How help names the value: "FILE". Empty: not at all.
  CommandOption& type_name(const std::string& name);
  CommandOption& check(const ValueCheck& check);
  /// Of an option with a list: each mention takes one value, so that other arguments may follow it.
  CommandOption& one_value_each();
  /// Of a positional argument with a list.
  CommandOption& from_to_values(int least, int most);
  /// One value stands for several, with this character between them.
  CommandOption& delimiter(char character);
  CommandOption& needs(const CommandOption& other);

 private:
  CLI::Option* option_;
};

class CommandOptions {
 public:
  explicit CommandOptions(CLI::App& command) : command_(command) {}
  CommandOptions(const CommandOptions&) = delete;
  CommandOptions& operator=(const CommandOptions&) = delete;

  /// `name`: "--output", or "RUN_DIR" for a positional argument. `value` outlives the parsing. A number needs
  /// a check of its range.
  CommandOption add(const std::string& name, std::string& value, const std::string& help);
  CommandOption add(const std::string& name, std::int64_t& value, const std::string& help);
  CommandOption add(const std::string& name, std::uint64_t& value, const std::string& help);
  CommandOption add(const std::string& name, int& value, const std::string& help);
  CommandOption add(const std::string& name, double& value, const std::string& help);
  CommandOption add(const std::string& name, std::optional<std::int64_t>& value, const std::string& help);
  CommandOption add(const std::string& name, std::optional<int>& value, const std::string& help);
  CommandOption add(const std::string& name, std::optional<double>& value, const std::string& help);
  CommandOption add(const std::string& name, std::vector<std::string>& values, const std::string& help);
  CommandOption add(const std::string& name, std::vector<std::int64_t>& values, const std::string& help);
  /// The option's value may be left out: then it is an empty text.
  CommandOption add_with_optional_value(const std::string& name, std::optional<std::string>& value,
                                        const std::string& help);
  /// An option without a value, which sets `value`.
  void add_flag(const std::string& name, bool& value, const std::string& help);
  /// An option without a value, which clears `value`.
  void add_flag_off(const std::string& name, bool& value, const std::string& help);

  /// A variable that lives until the parsing has ended.
  template <typename T>
  T& keep(T initial = {}) {
    auto kept = std::make_shared<T>(std::move(initial));
    kept_.push_back(kept);
    return *kept;
  }
  /// `work` is called when all options have their values: it makes arguments of several options, and throws
  /// usage_error() for options that do not go together. Called in the order in which they are added.
  void after_parsing(std::function<void()> work) { work_.push_back(std::move(work)); }
  /// After parsing: whether the option is on the command line.
  bool given(const std::string& name) const;

  void finish() const {
    for (const std::function<void()>& work : work_) work();
  }

 private:
  CLI::App& command_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::function<void()>> work_;
};

}  // namespace lockstep
