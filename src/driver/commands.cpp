// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands.h"

#include "driver/command_config_reference.h"
#include "driver/command_info.h"

namespace lockstep {

namespace {
constexpr CommandEntry kCommands[] = {
    {Command::info, command_info},
    {Command::config_reference, command_config_reference},
};
}  // namespace

std::span<const CommandEntry> command_table() { return kCommands; }

}  // namespace lockstep
