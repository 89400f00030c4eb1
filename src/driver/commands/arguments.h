// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arguments of each command, as plain structs: one per command, with that command's options and no
// others. Those that rooms below take are declared there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "run/setup/run_arguments.h"
#include "tools/convert/convert_arguments.h"

namespace lockstep {

struct EvaluateArguments {
  RunArguments run;
  // Members of an ensemble beside that of `run`.
  std::vector<std::string> more_runs, more_checkpoints;
  std::string name;  ///< not empty: the results are also in event files, in eval_NAME
  HangArguments hang;
};

struct WatchArguments {
  std::string run_dir;
  std::string name = "continuous";  ///< of the folder eval_NAME
  double delay_seconds = 0, throttle_seconds = 60, most_wait_seconds = 7200;
  bool averages = true;
  std::vector<std::string> overrides;
  bool quiet = false;
};

struct ExperimentArguments {
  std::string target;    ///< a configuration file, or a run directory
  std::string run_dir;   ///< with a configuration file; empty: its default run directory
  std::string schedule;  ///< empty: that of section experiment
  std::vector<std::string> overrides;
  bool quiet = false;
};

struct SweepArguments {
  std::string target;   ///< a configuration file, or the folder of a sweep
  std::string run_dir;  ///< with a configuration file; empty: runs/sweeps/<name of the configuration>
  std::optional<std::int64_t> groups;
  std::vector<std::string> overrides;
  bool json = false, quiet = false;
};

struct PredictArguments {
  RunArguments run;
  // Members of an ensemble beside that of `run`: further runs, or further checkpoints of it.
  std::vector<std::string> more_runs, more_checkpoints;
  std::vector<std::string> inputs;  ///< files and patterns of files; - alone: standard input
  std::string input_format;         ///< the reader of the input; empty: by its ending, or that of training
  std::vector<std::string> input_options;  ///< KEY=VALUE of that reader
  std::string output;
  std::vector<std::string> layers;  ///< not empty: their outputs instead of predictions
  bool ignore_labels = false;       ///< of the input
  bool sample_names = false;        ///< are written
};

/// `predict --prompt`.
struct SampleArguments {
  RunArguments run;
  std::string prompt;
  std::int64_t length = 200;  ///< tokens to add
  double temperature = 1;     ///< 0: the likeliest token
  std::int64_t top_k = 0;     ///< 0: all tokens
  std::uint64_t seed = 0;
};

struct InspectArguments {
  std::string target;  ///< a checkpoint, or a run directory for its newest one
  bool digest = false, json = false;
};

struct EventsArguments {
  std::string target;  ///< an event file, or a directory
  std::string tag;     ///< patterns, separated by commas; empty: all
  std::string format;  ///< of an export: csv or jsonl; empty: none
  std::string output = "-";
};

struct ReplayArguments {
  std::string run_dir;
  std::int64_t step = 0;
  std::vector<std::string> overrides;
  HangArguments hang;
  bool json = false, quiet = false;
};

struct CheckArguments {
  std::string config;
  bool expand = false;  ///< print the layers that blocks stand for, and nothing else
  bool plot_schedule = false;
  std::string schedule_svg;  ///< with plot_schedule: the file to write; empty: draw in the terminal
  std::string run_dir;       ///< empty: runs/<name of the configuration>; the run in it is not looked at
  std::vector<std::string> overrides;
};

struct DataArguments {
  std::string config;
  std::optional<std::int64_t> samples;  ///< of each set to look at; empty: 10,000, or fewer large ones
  std::string png;                      ///< a contact sheet; empty: none
  std::optional<std::int64_t> show;     ///< pictures in the terminal; without a value: 4 if there is one
  bool json = false;
  std::vector<std::string> overrides;
};

struct ExportArguments {
  std::string target, output;
  std::string format;               ///< empty: by the ending of the output
  std::string layout = "lockstep";  ///< or pytorch
  bool averages = true, fold_batch_norm = false;
};

struct ImportArguments {
  std::string file, output;
  std::string layout = "lockstep";  ///< or pytorch
  std::string like;                 ///< a run or checkpoint of the model; empty: none
  std::string map;                  ///< a file; empty: none
  bool show = false;
};

struct StatusArguments {
  std::string run_dir;
  bool json = false;
};

struct PlotArguments {
  std::vector<std::string> run_dirs;
  std::vector<std::string> tags;  ///< patterns; empty: loss and accuracy
  bool follow = false, log = false, ascii = false;
  std::string x = "step";  ///< step, epoch or hours
  double smooth = 0;
  std::optional<int> width, height;  ///< columns; lines of each chart
};

struct TopArguments {
  std::string run_dir;
  bool once = false, ascii = false;
  double interval = 1;  ///< seconds between pictures
};

struct TraceArguments {
  std::string run_dir;
  bool merge = false;
  std::string output;  ///< of merge; empty: RUN_DIR/profile/merged.json
};

struct ReportArguments {
  std::string run_dir, output;           ///< output empty: report.html in the run directory
  std::optional<std::int64_t> mistakes;  ///< of each list; empty: some, where computing them is quick
};

struct CompareArguments {
  std::vector<std::string> run_dirs;
  std::string output;  ///< empty: text alone
  bool expect_equal = false;
};

struct VocabularyArguments {
  std::string config, output;
  std::vector<std::string> overrides;
};

struct NeighboursArguments {
  std::string run_dir;
  std::vector<std::string> words;
  std::string variable;    ///< empty: the only one that fits
  std::string vocabulary;  ///< empty: that of the run directory
  std::string checkpoint;  ///< empty: the newest intact one
  std::int64_t count = 10;
  bool json = false;
};

/// `new`. What is empty is asked for on a terminal.
struct NewArguments {
  std::string data, output;
  std::string features, labels;  ///< a column, dataset or field; empty: guess
  std::string task;              ///< auto, classes or numbers
  std::string size;              ///< small, medium or large
  std::optional<double> held_out;
  std::optional<std::int64_t> epochs;
  bool force = false;
};

struct DoctorArguments {
  std::string folder = ".";  ///< whose disk is tried
  bool json = false;
};

/// `explain`.
struct ExplainArguments {
  std::vector<std::string> words;  ///< empty: list what can be explained
};

struct SchemaArguments {};

/// `man-page`: without a folder the first page is printed.
struct ManPageArguments {
  std::vector<std::pair<std::string, std::string>> pages;  ///< names of files, texts
  std::string folder;
};

struct InfoArguments {};
struct ConfigReferenceArguments {
  bool header = false;  ///< the C++ header of options instead
};

struct CheckpointListArguments {
  std::string run_dir;
  bool verify = false, json = false;
};

struct CheckpointVerifyArguments {
  std::string target;  ///< a checkpoint, or a run directory for all of its checkpoints
};

struct CheckpointDiffArguments {
  std::string first, second;
  bool json = false;
};

struct CheckpointAverageArguments {
  std::vector<std::string> files;
  std::string output;
};

struct CheckpointExportArguments {
  std::string target, output;
  std::vector<std::string> variables;  ///< patterns; empty: all
  std::vector<std::pair<std::string, std::string>> rename;
  bool averages = true;  ///< a variable has the values of its moving average, if there is one
};

/// --help, --version: a text to print.
struct HelpArguments {
  std::string text;
};

using CommandLine =
    std::variant<HelpArguments, TrainArguments, EvaluateArguments, PredictArguments, SampleArguments,
                 CheckArguments, DataArguments, ConvertArguments, InspectArguments, EventsArguments,
                 ReplayArguments, StatusArguments, PlotArguments, TopArguments, WatchArguments,
                 ExperimentArguments, SweepArguments, TraceArguments, ReportArguments, CompareArguments,
                 VocabularyArguments, NeighboursArguments, InfoArguments, ConfigReferenceArguments,
                 CheckpointListArguments, CheckpointVerifyArguments, CheckpointDiffArguments,
                 CheckpointAverageArguments, CheckpointExportArguments, ExportArguments, ImportArguments,
                 ExplainArguments, SchemaArguments, ManPageArguments, NewArguments, DoctorArguments>;

}  // namespace lockstep
