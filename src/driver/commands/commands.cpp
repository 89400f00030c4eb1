// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/commands.h"

#include "driver/commands/command_check.h"
#include "driver/commands/command_checkpoint.h"
#include "driver/commands/command_config_reference.h"
#include "driver/commands/command_evaluate.h"
#include "driver/commands/command_events.h"
#include "driver/commands/command_info.h"
#include "driver/commands/command_inspect.h"
#include "driver/commands/command_neighbours.h"
#include "driver/commands/command_predict.h"
#include "driver/commands/command_replay.h"
#include "driver/commands/command_status.h"
#include "driver/commands/command_train.h"
#include "driver/commands/command_vocabulary.h"

namespace lockstep {

namespace {
constexpr CommandEntry kCommands[] = {
    {Command::train, command_train},
    {Command::evaluate, command_evaluate},
    {Command::predict, command_predict},
    {Command::check, command_check},
    {Command::inspect, command_inspect},
    {Command::events, command_events},
    {Command::replay, command_replay},
    {Command::status, command_status},
    {Command::vocabulary, command_vocabulary},
    {Command::neighbours, command_neighbours},
    {Command::info, command_info},
    {Command::config_reference, command_config_reference},
    {Command::checkpoint_list, command_checkpoint_list},
    {Command::checkpoint_verify, command_checkpoint_verify},
    {Command::checkpoint_diff, command_checkpoint_diff},
    {Command::checkpoint_average, command_checkpoint_average},
    {Command::checkpoint_export, command_checkpoint_export},
};
}  // namespace

std::span<const CommandEntry> command_table() { return kCommands; }

}  // namespace lockstep
