// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to the command line: the commands with their options, as CLI11 knows them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/commands/arguments.h"

namespace lockstep {

/// The parser and the variables that it writes into. Neither copied nor moved: CLI11 keeps addresses.
class CommandLineParser {
 public:
  CommandLineParser();
  CommandLineParser(const CommandLineParser&) = delete;
  CommandLineParser& operator=(const CommandLineParser&) = delete;

  CLI::App& app() { return app_; }
  /// After parsing: the arguments of the chosen command. Throws Error(usage) for options that do not go
  /// together.
  CommandLine arguments_of(const CLI::App& command) const { return results_.at(&command)(); }

 private:
  /// Adds a command; `result` makes its arguments after parsing.
  CLI::App* add(CLI::App& parent, const std::string& name, const std::string& help,
                const std::string& example, std::function<CommandLine()> result);
  void add_overrides(CLI::App* command);
  void add_hang(CLI::App* command, HangArguments& hang);
  /// Makes the arguments `parsed` of a command with --set.
  template <typename Arguments>
  std::function<CommandLine()> with_overrides(const Arguments& parsed) const;
  /// What --set, --steps and --threads ask for.
  std::vector<std::string> overrides() const;
  std::vector<std::pair<std::string, std::string>> renames() const;

  void add_train();
  void add_evaluate();
  void add_predict();
  void add_check();
  void add_data();
  void add_convert();
  void add_export();
  void add_import();
  void add_inspect();
  void add_checkpoint_commands();
  void add_events();
  void add_replay();
  void add_status();
  void add_plot();
  void add_top();
  void add_watch();
  void add_experiment();
  void add_sweep();
  void add_trace();
  void add_report();
  void add_compare();
  void add_vocabulary();
  void add_neighbours();
  void add_explain();
  void add_schema();
  void add_pages();
  void add_new();
  void add_doctor();
  CommandLine predict_or_sample(const CLI::App& command) const;
  /// The runs and checkpoints of a command that takes an ensemble.
  void add_members(CLI::App* command, const char* name, const char* help);
  /// The first of them; the others go to `more_runs` and `more_checkpoints`.
  RunArguments members_of(const RunArguments& parsed, std::vector<std::string>& more_runs,
                          std::vector<std::string>& more_checkpoints) const;
  RunArguments only_member() const;

  CLI::App app_;
  std::map<const CLI::App*, std::function<CommandLine()>> results_;
  // Only one command is chosen, so options of several commands may share a variable.
  std::vector<std::string> set_, rename_, targets_, checkpoints_;
  std::optional<std::int64_t> steps_, threads_;
  std::string resume_ = "auto";

  TrainArguments train_;
  EvaluateArguments evaluate_;
  ConfigReferenceArguments config_reference_;
  PredictArguments predict_;
  SampleArguments sample_;
  CheckArguments check_;
  DataArguments data_;
  ConvertArguments convert_;
  ExportArguments export_run_;
  ImportArguments import_;
  InspectArguments inspect_;
  EventsArguments events_;
  ReplayArguments replay_;
  StatusArguments status_;
  PlotArguments plot_;
  TopArguments top_;
  WatchArguments watch_;
  ExperimentArguments experiment_;
  SweepArguments sweep_;
  TraceArguments trace_;
  ReportArguments report_;
  CompareArguments compare_;
  VocabularyArguments vocabulary_;
  NeighboursArguments neighbours_;
  ExplainArguments explain_;
  NewArguments new_;
  DoctorArguments doctor_;
  ManPageArguments man_page_;
  std::string shell_ = "bash";
  CheckpointListArguments list_;
  CheckpointVerifyArguments verify_;
  CheckpointDiffArguments diff_;
  CheckpointAverageArguments average_;
  CheckpointExportArguments export_;
};

}  // namespace lockstep
