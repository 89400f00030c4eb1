// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line as a plain struct. Parsing touches neither files nor MPI, so wrong usage is answered at
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

enum class Command {
  help,
  train,
  evaluate,
  predict,
  inspect,
  events,
  replay,
  check,
  status,
  vocabulary,
  neighbours,
  info,
  config_reference,
  checkpoint_list,
  checkpoint_verify,
  checkpoint_diff,
  checkpoint_average,
  checkpoint_export
};
/// `automatic` continues if the run directory has a checkpoint; `must` fails without one; `never` fails with
/// one.
enum class Resume { automatic, never, must };

/// What the user asked for. Fields that a command does not have keep their defaults.
struct CommandLine {
  Command command = Command::help;
  std::string text;                   ///< help: what to print
  std::string target;                 ///< the positional argument: CONFIG, RUN_DIR, CHECKPOINT, DIR or FILE
  std::string run_dir;                ///< --run-dir; empty: not given
  std::string checkpoint;             ///< --checkpoint; empty: the newest
  std::string input;                  ///< predict --input
  std::optional<std::string> prompt;  ///< predict --prompt: sample text
  std::int64_t length = 200;          ///< predict --length: tokens to sample
  double temperature = 1;             ///< predict --temperature; 0: the likeliest token
  std::int64_t top_k = 0;             ///< predict --top-k; 0: all tokens
  std::uint64_t seed = 0;             ///< predict --seed
  std::vector<std::string> words;     ///< neighbours --words
  std::string variable;               ///< neighbours --variable; empty: the only one that fits
  std::string vocabulary;             ///< neighbours --vocabulary; empty: that of the run directory
  std::int64_t count = 10;            ///< neighbours --count
  std::string output;  ///< --output of predict, vocabulary, checkpoint average, checkpoint export
  std::string other;   ///< checkpoint diff: the second checkpoint
  std::vector<std::string> targets;    ///< checkpoint average: the files, in order
  std::vector<std::string> variables;  ///< checkpoint export --variables
  /// checkpoint export --rename FROM=TO
  std::vector<std::pair<std::string, std::string>> rename;
  std::string tag;                   ///< events --tag; empty: all
  std::vector<std::int64_t> record;  ///< train --record: steps
  std::int64_t step = 0;             ///< replay --step
  std::optional<int> hang_rank;      ///< --hang-rank
  double hang_seconds = 3600;        ///< --hang-seconds
  /// --set, in order; --steps N adds train.steps=N and train.epochs=null, --threads N adds threads=N.
  std::vector<std::string> overrides;
  Resume resume = Resume::automatic;
  bool quiet = false, digest = false, json = false, verify = false;
};

/// Throws Error(usage), with the nearest known command or option if one is misspelt. `--help`, `--version`
/// and `help` give Command::help with the text to print.
CommandLine parse_command_line(int argc, const char* const* argv);

/// The rank that a launcher (Open MPI, PMIx, PMI, Slurm) put into the environment; 0 without one. A hint, for
/// messages before MPI_Init only: the truth is MPI_Comm_rank.
int launcher_rank_hint();

}  // namespace lockstep
