// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A command of the program: its name, its help, its options and its function. It is defined in one file of
// commands/, and listed in commands/command_table.cpp (docs/adding_a_command.md).
#pragma once

#include <memory>
#include <string_view>

#include "driver/command_line/command_options.h"
#include "driver/command_line/usage_error.h"

namespace lockstep {

/// One call of a command, with its arguments.
class CommandCall {
 public:
  CommandCall() = default;
  CommandCall(const CommandCall&) = delete;
  CommandCall& operator=(const CommandCall&) = delete;
  virtual ~CommandCall() = default;

  /// Adds the command's options, which write into this call.
  virtual void declare(CommandOptions& options) = 0;
  /// Returns the exit code, and throws Error.
  virtual int run() const = 0;
};

template <typename Arguments>
class CallWith : public CommandCall {
 public:
  using Declare = void (*)(CommandOptions& options, Arguments& arguments);
  using Run = int (*)(const Arguments& arguments);

  CallWith(Declare declares, Run runs) : declare_(declares), run_(runs) {}

  void declare(CommandOptions& options) override { declare_(options, arguments_); }
  int run() const override { return run_(arguments_); }
  const Arguments& arguments() const { return arguments_; }

 private:
  Arguments arguments_;
  Declare declare_;
  Run run_;
};

struct Command {
  std::string_view name;     ///< "train", or "checkpoint list" for a command of a group
  std::string_view help;     ///< one line
  std::string_view example;  ///< command lines, one a line; empty for a group
  /// Null: a group, whose commands follow it in the table.
  std::unique_ptr<CommandCall> (*make)() = nullptr;
};

/// The `make` of a command: kDeclare(CommandOptions&, Arguments&) adds its options, kRun(const Arguments&) is
/// its function.
template <typename Arguments, typename CallWith<Arguments>::Declare kDeclare,
          typename CallWith<Arguments>::Run kRun>
std::unique_ptr<CommandCall> call_with() {
  return std::make_unique<CallWith<Arguments>>(kDeclare, kRun);
}

/// For a command without options.
struct NoArguments {};
inline void no_options(CommandOptions& /*options*/, NoArguments& /*arguments*/) {}

}  // namespace lockstep
