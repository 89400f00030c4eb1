// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line/parser.h"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <set>
#include <string_view>

#include "comm/environment.h"
#include "driver/commands/check.h"
#include "driver/commands/command_table.h"
#include "driver/commands/data.h"
#include "driver/commands/evaluate.h"
#include "driver/commands/events.h"
#include "driver/commands/inspect.h"
#include "driver/commands/neighbours.h"
#include "driver/commands/predict.h"
#include "driver/commands/replay.h"
#include "support/error_support.h"
#include "tools/convert/convert_arguments.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using ::testing::StartsWith;

CommandLine parse(std::vector<const char*> arguments, CommandTable commands = command_table()) {
  arguments.insert(arguments.begin(), "lockstep");
  return parse_command_line(commands, static_cast<int>(arguments.size()), arguments.data());
}
template <typename Arguments>
Arguments parse_as(std::vector<const char*> arguments) {
  const CommandLine line = parse(std::move(arguments));
  const auto* const call = dynamic_cast<const CallWith<Arguments>*>(line.call.get());
  EXPECT_NE(call, nullptr) << "another command";
  return call == nullptr ? Arguments() : call->arguments();
}
std::string help_of(std::vector<const char*> arguments) {
  const CommandLine line = parse(std::move(arguments));
  EXPECT_EQ(line.call, nullptr);
  return line.text;
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
  EXPECT_FALSE(predict.continues_text);
  const auto text =
      parse_as<PredictArguments>({"predict", "runs/a", "--prompt", "To be", "--length", "9", "--temperature",
                                  "0.5", "--top-k", "3", "--top-p", "0.9", "--seed", "7"});
  EXPECT_TRUE(text.continues_text);
  const SampleArguments& sample = text.sample;
  EXPECT_EQ(sample.run.target, "runs/a");
  EXPECT_EQ(sample.prompt, "To be");
  EXPECT_EQ(sample.length, 9);
  EXPECT_EQ(sample.choice.temperature, 0.5);
  EXPECT_EQ(sample.choice.top_k, 3);
  EXPECT_EQ(sample.choice.top_p, 0.9);
  EXPECT_EQ(sample.choice.seed, 7U);
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
  for (const char* name : {"info", "config-reference"}) EXPECT_NE(parse({name}).call, nullptr);
  EXPECT_EQ(parse_as<EvaluateArguments>({"evaluate", "a", "b", "c", "--checkpoint", "x.h5"}).more_runs,
            (std::vector<std::string>{"b", "c"}));
}

TEST(CommandLine, HelpOfEachCommandHasAnExample) {
  for (const char* command : {"train", "evaluate", "predict", "inspect", "events", "check", "data", "convert",
                              "info", "config-reference"}) {
    const std::string help = help_of({command, "--help"});
    EXPECT_THAT(help, HasSubstr("Example:\n  "));
    EXPECT_THAT(help, HasSubstr(std::string("lockstep ") + command));
  }
  EXPECT_EQ(help_of({"help", "checkpoint", "list"}), help_of({"checkpoint", "list", "--help"}));
  EXPECT_THAT(usage_error({"help", "trian"}), HasSubstr("Did you mean 'train'?"));
  for (const auto& arguments : {std::vector<const char*>{"--help"}, {"-h"}, {"help"}})
    EXPECT_THAT(help_of(arguments), HasSubstr("config-reference"));
}

TEST(CommandLine, Version) {
  EXPECT_THAT(help_of({"--version"}), ::testing::MatchesRegex("lockstep [0-9]+\\.[0-9]+\\.[0-9]+\n"));
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
               {prompt, "--top-p"},
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

TEST(CommandLine, CheckMayLeaveOutTheFileOfThePlot) {
  const auto plain = parse_as<CheckArguments>({"check", "a.yaml"});
  EXPECT_FALSE(plain.plot_schedule);
  for (const auto& arguments : {std::vector<const char*>{"check", "--plot-schedule", "a.yaml"},
                                {"check", "a.yaml", "--plot-schedule"}}) {
    const auto drawn = parse_as<CheckArguments>(arguments);
    EXPECT_EQ(drawn.config, "a.yaml");
    EXPECT_TRUE(drawn.plot_schedule);
    EXPECT_EQ(drawn.schedule_svg, "");
  }
  EXPECT_EQ(parse_as<CheckArguments>({"check", "a.yaml", "--plot-schedule", "b.svg"}).schedule_svg, "b.svg");
  EXPECT_THAT(usage_error({"check"}),
              StartsWith("lockstep: check: CONFIG is required\n  See: lockstep check"));
  EXPECT_THAT(usage_error({"check", "a.yaml", "--plot-schedule", "b.png"}),
              HasSubstr("check: --plot-schedule: the name of the file must end with .svg"));
}

TEST(CommandTable, EachCommandHasANameOfItsOwnAndHelp) {
  std::set<std::string_view> names;
  for (const Command* const command : command_table()) {
    EXPECT_TRUE(names.insert(command->name).second) << command->name << " stands twice in the table";
    EXPECT_FALSE(command->help.empty()) << command->name;
    EXPECT_EQ(command->example.empty(), command->make == nullptr) << command->name;
    if (const std::size_t space = command->name.find(' '); space != std::string_view::npos) {
      EXPECT_TRUE(names.contains(command->name.substr(0, space)))
          << "the group comes first: " << command->name;
    }
  }
}

struct EchoArguments {
  std::string word, joined;
  std::optional<std::string> mark;
  std::int64_t times = 1;
  bool loud = false, ends = true;
};

void declare_echo(CommandOptions& options, EchoArguments& arguments) {
  options.add("WORD", arguments.word, "What to say").required().type_name("");
  const CommandOption times =
      options.add("--times", arguments.times, "How often").type_name("N").check(whole_number(1, 9));
  options.add_with_optional_value("--mark", arguments.mark, "Said last").type_name("[TEXT]").needs(times);
  options.add_flag("--loud", arguments.loud, "Say it aloud");
  options.add_flag_off("--no-end", arguments.ends, "Without an end");
  auto& parts = options.keep<std::vector<std::string>>();
  options.add("--part", parts, "A part").one_value_each();
  options.after_parsing([&options, &arguments, &parts] {
    if (options.given("--loud") && options.given("--no-end"))
      throw lockstep::usage_error("echo: --loud has an end", "Leave out one of them.");
    for (const std::string& part : parts) arguments.joined += part;
  });
}

int run_echo(const EchoArguments& arguments) { return static_cast<int>(arguments.times); }

// A table of its own: what a command's file says is all that a command needs.
TEST(CommandTable, ACommandIsItsEntry) {
  const Command group{"say", "Says something", ""};
  const Command echo{"say echo", "Says a word", "lockstep say echo a\nlockstep say echo b",
                     call_with<EchoArguments, declare_echo, run_echo>};
  const std::array<const Command*, 2> table{&group, &echo};
  const CommandLine line =
      parse({"say", "echo", "--part", "a", "--part", "b", "w", "--times", "3", "--no-end"}, table);
  const auto* const call = dynamic_cast<const CallWith<EchoArguments>*>(line.call.get());
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->arguments().word, "w");
  EXPECT_EQ(call->arguments().joined, "ab");
  EXPECT_FALSE(call->arguments().ends);
  EXPECT_EQ(call->arguments().mark, std::nullopt);
  EXPECT_EQ(line.call->run(), 3);
  EXPECT_THAT(parse({"say", "echo", "--help"}, table).text,
              HasSubstr("Example:\n  lockstep say echo a\n  lockstep say echo b\n"));
  EXPECT_THAT(parse({"say", "--help"}, table).text, HasSubstr("lockstep say echo --help"));
  const auto error = [&](std::vector<const char*> arguments) {
    return message_of([&] { parse(arguments, table); }, ErrorKind::usage);
  };
  EXPECT_THAT(error({"say", "echo", "w", "--loud", "--no-end"}), HasSubstr("echo: --loud has an end"));
  EXPECT_THAT(error({"say", "echo", "w", "--mark"}), HasSubstr("--mark requires --times"));
  EXPECT_THAT(error({"say"}), HasSubstr("say: a command is missing\n  Commands: echo."));
  EXPECT_THAT(error({"train"}), HasSubstr("unknown command 'train'"));
  const DescribedCommand described = description_of(table);
  ASSERT_EQ(described.below.size(), 1U);
  EXPECT_EQ(described.below[0].below[0].name, "echo");
}

TEST(LauncherRank, IsThatOfTheFirstKnownLauncher) {
  std::map<std::string, const char*> environment;
  const auto rank = [&] {
    return launcher_rank([&](const char* name) {
      const auto at = environment.find(name);
      return at == environment.end() ? nullptr : at->second;
    });
  };
  EXPECT_EQ(rank(), 0);
  environment = {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}};
  EXPECT_EQ(rank(), 3);
  environment.insert({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(rank(), 1);
  environment["OMPI_COMM_WORLD_RANK"] = "nonsense";
  EXPECT_EQ(rank(), 3);
}

// A process that is alone speaks, whatever a batch job or an outer program left in the environment.
TEST(LauncherRank, IsZeroWithoutALauncher) {
  for (const char* name : {"SLURM_PROCID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"})
    EXPECT_EQ(
        launcher_rank([&](const char* asked) { return std::string_view(asked) == name ? "1" : nullptr; }), 0)
        << name;
}

}  // namespace
}  // namespace lockstep
