// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands.h"

#include "driver/command_check.h"
#include "driver/command_checkpoint.h"
#include "driver/command_config_reference.h"
#include "driver/command_evaluate.h"
#include "driver/command_events.h"
#include "driver/command_info.h"
#include "driver/command_inspect.h"
#include "driver/command_neighbours.h"
#include "driver/command_predict.h"
#include "driver/command_replay.h"
#include "driver/command_status.h"
#include "driver/command_train.h"
#include "driver/command_vocabulary.h"

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
