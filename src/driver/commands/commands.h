// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands of the program, one file each. To add one: its arguments in arguments.h, its options in
// command_line_options.cpp, and a function here.
#pragma once

#include "driver/commands/arguments.h"

namespace lockstep {

// Each returns the exit code and throws Error.
int run_command(const HelpArguments& arguments);
int run_command(const TrainArguments& arguments);
int run_command(const EvaluateArguments& arguments);
int run_command(const PredictArguments& arguments);
int run_command(const SampleArguments& arguments);
int run_command(const CheckArguments& arguments);
int run_command(const DataArguments& arguments);
int run_command(const ConvertArguments& arguments);
int run_command(const ExportArguments& arguments);
int run_command(const ImportArguments& arguments);
int run_command(const InspectArguments& arguments);
int run_command(const EventsArguments& arguments);
int run_command(const ReplayArguments& arguments);
int run_command(const StatusArguments& arguments);
int run_command(const PlotArguments& arguments);
int run_command(const TopArguments& arguments);
int run_command(const WatchArguments& arguments);
int run_command(const ExperimentArguments& arguments);
int run_command(const SweepArguments& arguments);
int run_command(const TraceArguments& arguments);
int run_command(const ReportArguments& arguments);
int run_command(const CompareArguments& arguments);
int run_command(const VocabularyArguments& arguments);
int run_command(const NeighboursArguments& arguments);
int run_command(const NewArguments& arguments);
int run_command(const DoctorArguments& arguments);
int run_command(const ExplainArguments& arguments);
int run_command(const SchemaArguments& arguments);
int run_command(const ManPageArguments& arguments);
int run_command(const InfoArguments& arguments);
int run_command(const ConfigReferenceArguments& arguments);
int run_command(const CheckpointListArguments& arguments);
int run_command(const CheckpointVerifyArguments& arguments);
int run_command(const CheckpointDiffArguments& arguments);
int run_command(const CheckpointAverageArguments& arguments);
int run_command(const CheckpointExportArguments& arguments);

}  // namespace lockstep
