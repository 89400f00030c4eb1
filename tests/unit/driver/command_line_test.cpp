// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using ::testing::StartsWith;

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "lockstep");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}
template <typename Arguments>
Arguments parse_as(std::vector<const char*> arguments) {
  CommandLine line = parse(std::move(arguments));
  EXPECT_TRUE(std::holds_alternative<Arguments>(line)) << "another command";
  return std::get<Arguments>(std::move(line));
}
std::string usage_error(std::vector<const char*> arguments) {
  return message_of([&] { parse(arguments); }, ErrorKind::usage);
}

TEST(CommandLine, TrainWithEverything) {
  const auto line = parse_as<TrainArguments>({"train", "a.yaml", "--run-dir", "runs/a", "--set", "seed=1",
                                              "--set=train.batch_size=-2", "--steps", "50", "--threads=3",
                                              "--resume", "must", "--accept-changes", "--quiet"});
  EXPECT_TRUE(line.accept_changes);
  EXPECT_EQ(line.target, "a.yaml");
  EXPECT_EQ(line.run_dir, "runs/a");
  EXPECT_THAT(line.overrides, ElementsAre("seed=1", "train.batch_size=-2", "train.steps=50",
                                          "train.epochs=null", "threads=3"));
  EXPECT_EQ(line.resume, Resume::must);
  EXPECT_TRUE(line.quiet);
}

TEST(CommandLine, Defaults) {
  const auto line = parse_as<TrainArguments>({"train", "a.yaml"});
  EXPECT_EQ(line.resume, Resume::automatic);
  EXPECT_TRUE(line.overrides.empty());
  EXPECT_EQ(line.run_dir, "");
  EXPECT_FALSE(line.accept_changes);
  EXPECT_FALSE(line.quiet);
}

TEST(CommandLine, RecordedStepsAndParkedRanks) {
  const auto line =
      parse_as<TrainArguments>({"train", "--record", "3", "--record=20", "a.yaml", "--hang-rank", "0"});
  EXPECT_THAT(line.record, ElementsAre(3, 20));
  EXPECT_EQ(line.hang.rank, 0);
  EXPECT_EQ(line.hang.seconds, 3600);
  EXPECT_FALSE(parse_as<TrainArguments>({"train", "a.yaml"}).hang.rank.has_value());
  EXPECT_EQ(parse_as<EvaluateArguments>({"evaluate", "runs/a", "--hang-rank", "2", "--hang-seconds", "1.5"})
                .hang.seconds,
            1.5);
  const auto replay =
      parse_as<ReplayArguments>({"replay", "runs/a", "--step", "7", "--json", "--threads", "2"});
  EXPECT_EQ(replay.step, 7);
  EXPECT_TRUE(replay.json);
  EXPECT_THAT(replay.overrides, ElementsAre("threads=2"));
  EXPECT_THAT(usage_error({"replay", "runs/a"}), HasSubstr("--step is required"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--record", "0"}),
              HasSubstr("'0' is not a whole number from 1 to 1000000000000"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--hang-rank", "-1"}),
              HasSubstr("'-1' is not a whole number from 0 to"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--hang-rank", "0", "--hang-seconds", "0"}),
              HasSubstr("'0' is not a number above 0, up to 1000000000"));
}

// One --set takes one value, so that the positional argument may follow.
TEST(CommandLine, PositionalAfterSet) {
  const auto line = parse_as<TrainArguments>({"train", "--set", "seed=1", "a.yaml"});
  EXPECT_EQ(line.target, "a.yaml");
  EXPECT_THAT(line.overrides, ElementsAre("seed=1"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--set", "seed=1", "b.yaml"}),
              HasSubstr("one argument too many: 'b.yaml'"));
}

TEST(CommandLine, TheOtherCommands) {
  EXPECT_EQ(parse_as<EvaluateArguments>({"evaluate", "runs/a", "--checkpoint", "c.h5"}).run.checkpoint,
            "c.h5");
  EXPECT_EQ(parse_as<EvaluateArguments>({"evaluate", "a.yaml", "--run-dir", "runs/a"}).run.run_dir, "runs/a");
  const auto predict = parse_as<PredictArguments>(
      {"predict", "--input", "i.csv", "runs/a", "--input", "j*.csv", "--output", "o.csv"});
  EXPECT_EQ(predict.run.target, "runs/a");
  EXPECT_THAT(predict.inputs, ElementsAre("i.csv", "j*.csv"));
  EXPECT_EQ(predict.output, "o.csv");
  const auto sample = parse_as<SampleArguments>({"predict", "runs/a", "--prompt", "To be", "--length", "9",
                                                 "--temperature", "0.5", "--top-k", "3", "--seed", "7"});
  EXPECT_EQ(sample.prompt, "To be");
  EXPECT_EQ(sample.length, 9);
  EXPECT_EQ(sample.temperature, 0.5);
  EXPECT_EQ(sample.top_k, 3);
  EXPECT_EQ(sample.seed, 7U);
  const auto near = parse_as<NeighboursArguments>(
      {"neighbours", "runs/a", "--words", "a,b", "--count", "3", "--variable", "e/w"});
  EXPECT_EQ(near.words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(near.count, 3);
  EXPECT_EQ(near.variable, "e/w");
  const auto inspect = parse_as<InspectArguments>({"inspect", "c.h5", "--digest", "--json"});
  EXPECT_TRUE(inspect.digest && inspect.json);
  EXPECT_EQ(parse_as<EventsArguments>({"events", "runs/a", "--tag", "loss"}).tag, "loss");
  EXPECT_EQ(parse_as<CheckArguments>({"check", "a.yaml"}).config, "a.yaml");
  const auto data =
      parse_as<DataArguments>({"data", "a.yaml", "--samples", "9", "--png", "a.png", "--show", "0"});
  EXPECT_EQ(data.config, "a.yaml");
  EXPECT_EQ(data.samples, 9);
  EXPECT_EQ(data.png, "a.png");
  EXPECT_EQ(data.show, 0);
  const auto convert = parse_as<ConvertArguments>({"convert", "a.yaml", "a.h5", "--part", "eval", "--shards",
                                                   "3", "--gzip", "9", "--threads", "2", "--no-verify"});
  EXPECT_EQ(convert.config, "a.yaml");
  EXPECT_EQ(convert.output, "a.h5");
  EXPECT_EQ(convert.part, "eval");
  EXPECT_EQ(convert.shards, 3);
  EXPECT_EQ(convert.gzip, 9);
  EXPECT_EQ(convert.chunk, std::nullopt);
  EXPECT_EQ(convert.overrides, std::vector<std::string>{"threads=2"});
  EXPECT_FALSE(convert.verify);
  parse_as<InfoArguments>({"info"});
  parse_as<ConfigReferenceArguments>({"config-reference"});
}

TEST(CommandLine, HelpOfEachCommandHasAnExample) {
  for (const char* command : {"train", "evaluate", "predict", "inspect", "events", "check", "data", "convert",
                              "info", "config-reference"}) {
    const auto line = parse_as<HelpArguments>({command, "--help"});
    EXPECT_THAT(line.text, HasSubstr("Example:\n  "));
    EXPECT_THAT(line.text, HasSubstr(std::string("lockstep ") + command));
  }
  EXPECT_EQ(parse_as<HelpArguments>({"help", "checkpoint", "list"}).text,
            parse_as<HelpArguments>({"checkpoint", "list", "--help"}).text);
  EXPECT_THAT(usage_error({"help", "trian"}), HasSubstr("Did you mean 'train'?"));
  for (const auto& arguments : {std::vector<const char*>{"--help"}, {"-h"}, {"help"}})
    EXPECT_THAT(parse_as<HelpArguments>(arguments).text, HasSubstr("config-reference"));
}

TEST(CommandLine, Version) {
  EXPECT_THAT(parse_as<HelpArguments>({"--version"}).text,
              ::testing::MatchesRegex("lockstep [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CommandLine, EmptyPaths) {
  EXPECT_THAT(usage_error({"train", "a.yaml", "--run-dir", ""}),
              HasSubstr("--run-dir: '' is not a path: it is empty"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--run-dir="}), HasSubstr("--run-dir"));
  EXPECT_THAT(usage_error({"check", ""}), HasSubstr("is empty"));
  EXPECT_THAT(usage_error({"evaluate", "runs/a", "--checkpoint", ""}), HasSubstr("--checkpoint"));
  EXPECT_THAT(usage_error({"check", "a.yaml", "--run-dir", ""}), HasSubstr("--run-dir: '' is not a path"));
  EXPECT_THAT(usage_error({"events", "runs/a", "--tag", ""}), HasSubstr("--tag: '' is not a tag"));
}

TEST(CommandLine, EveryNumberHasARange) {
  const std::vector<const char*> prompt{"predict", "r", "--prompt", "x"};
  const struct {
    std::vector<const char*> command;
    const char* option;
  } cases[] = {{{"train", "a.yaml"}, "--steps"},
               {{"train", "a.yaml"}, "--threads"},
               {{"train", "a.yaml"}, "--record"},
               {{"train", "a.yaml"}, "--hang-rank"},
               {{"train", "a.yaml"}, "--hang-seconds"},
               {prompt, "--length"},
               {prompt, "--temperature"},
               {prompt, "--top-k"},
               {prompt, "--seed"},
               {{"replay", "r"}, "--step"},
               {{"neighbours", "r", "--words", "a"}, "--count"}};
  for (const auto& [command, option] : cases)
    for (const char* value : {"99999999999999999999", "1e300", "-1", "x"}) {
      std::vector<const char*> arguments = command;
      arguments.insert(arguments.end(), {option, value});
      const std::string message = usage_error(arguments);
      EXPECT_THAT(message, HasSubstr(std::string(option) + ": '" + value + "' is not a"));
      EXPECT_THAT(message, ::testing::AnyOf(HasSubstr(" to "), HasSubstr("up to")));
    }
}

TEST(CommandLine, MisspeltCommand) {
  EXPECT_THAT(usage_error({"trian", "a.yaml"}),
              StartsWith("lockstep: unknown command 'trian'\n  Did you mean 'train'? Commands: train, "));
  EXPECT_THAT(usage_error({"xyzzy"}), Not(HasSubstr("Did you mean")));
  EXPECT_THAT(usage_error({}), HasSubstr("a command is missing"));
  EXPECT_THAT(usage_error({"--verison"}), HasSubstr("Did you mean '--version'?"));
}

TEST(CommandLine, MisspeltOption) {
  EXPECT_THAT(usage_error({"train", "a.yaml", "--stpes=3"}),
              StartsWith("lockstep: train: unknown option '--stpes'\n  Did you mean '--steps'?"));
  // The misspelt option is the cause, not the required one that is missing for it.
  EXPECT_THAT(usage_error({"predict", "r", "--inptu", "x", "--output", "y"}),
              HasSubstr("Did you mean '--input'?"));
  EXPECT_THAT(usage_error({"info", "--digest"}), HasSubstr("info: unknown option '--digest'"));
}

TEST(CommandLine, MissingAndWrongValues) {
  EXPECT_THAT(usage_error({"train"}), HasSubstr("train: CONFIG|RUN_DIR is required"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "b.yaml"}), HasSubstr("one argument too many: 'b.yaml'"));
  EXPECT_THAT(usage_error({"predict", "r", "--input", "x"}), HasSubstr("--output is required"));
  EXPECT_THAT(usage_error({"predict", "r", "--prompt", "x", "--output", "y"}),
              HasSubstr("--output does not go with --prompt"));
  EXPECT_THAT(usage_error({"predict", "r", "--input", "x", "--output", "y", "--seed", "1"}),
              HasSubstr("--seed needs --prompt"));
  EXPECT_THAT(usage_error({"predict", "r", "--prompt", "x", "--temperature", "-1"}),
              HasSubstr("'-1' is not a number from 0 to 1000000"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--steps", "0"}),
              HasSubstr("'0' is not a whole number from 1 to"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--threads", "1.5"}), HasSubstr("'1.5' is not a whole number"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--resume", "maybe"}),
              HasSubstr("'maybe' is not one of auto, never, must"));
  EXPECT_THAT(usage_error({"train", "a.yaml", "--set"}), HasSubstr("--set"));
}

TEST(LauncherRank, FirstKnownVariableCounts) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) unsetenv(name);
  EXPECT_EQ(launcher_rank_hint(), 0);
  setenv("SLURM_PROCID", "3", 1);
  EXPECT_EQ(launcher_rank_hint(), 3);
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  EXPECT_EQ(launcher_rank_hint(), 1);
  setenv("OMPI_COMM_WORLD_RANK", "nonsense", 1);
  EXPECT_EQ(launcher_rank_hint(), 3);
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("SLURM_PROCID");
}

}  // namespace
}  // namespace lockstep
