// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/command_table.h"

namespace lockstep {

// The commands, one per line, as `lockstep --help` lists them. Each is defined in its own file of this
// folder.
#define LOCKSTEP_COMMANDS(COMMAND)   \
  COMMAND(kTrainCommand)             \
  COMMAND(kEvaluateCommand)          \
  COMMAND(kPredictCommand)           \
  COMMAND(kInspectCommand)           \
  COMMAND(kCheckpointCommand)        \
  COMMAND(kCheckpointListCommand)    \
  COMMAND(kCheckpointVerifyCommand)  \
  COMMAND(kCheckpointDiffCommand)    \
  COMMAND(kCheckpointAverageCommand) \
  COMMAND(kCheckpointExportCommand)  \
  COMMAND(kEventsCommand)            \
  COMMAND(kReplayCommand)            \
  COMMAND(kCheckCommand)             \
  COMMAND(kLrFindCommand)            \
  COMMAND(kDataCommand)              \
  COMMAND(kConvertCommand)           \
  COMMAND(kExportCommand)            \
  COMMAND(kImportCommand)            \
  COMMAND(kStatusCommand)            \
  COMMAND(kPlotCommand)              \
  COMMAND(kTopCommand)               \
  COMMAND(kWatchCommand)             \
  COMMAND(kExperimentCommand)        \
  COMMAND(kSweepCommand)             \
  COMMAND(kTraceCommand)             \
  COMMAND(kReportCommand)            \
  COMMAND(kCompareCommand)           \
  COMMAND(kVocabularyCommand)        \
  COMMAND(kNeighboursCommand)        \
  COMMAND(kNewCommand)               \
  COMMAND(kExplainCommand)           \
  COMMAND(kDoctorCommand)            \
  COMMAND(kSchemaCommand)            \
  COMMAND(kManPageCommand)           \
  COMMAND(kCompletionCommand)        \
  COMMAND(kInfoCommand)              \
  COMMAND(kConfigReferenceCommand)

#define LOCKSTEP_DECLARE(entry) extern const Command entry;
LOCKSTEP_COMMANDS(LOCKSTEP_DECLARE)
#undef LOCKSTEP_DECLARE

CommandTable command_table() {
#define LOCKSTEP_LIST(entry) &entry,
  static constexpr const Command* kTable[] = {LOCKSTEP_COMMANDS(LOCKSTEP_LIST)};
#undef LOCKSTEP_LIST
  return kTable;
}

}  // namespace lockstep
