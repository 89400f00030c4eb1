// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/option.h"

#include <gmock/gmock.h>

#include "config/yaml_node.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Mode { slow, fast, automatic };
struct Part {
  std::optional<std::int64_t> every;
  double rate = 0;
};
struct Settings {
  bool on = false;
  int count = 0;
  std::int64_t size = 0;
  float share = 0;
  std::string name;
  std::vector<std::int64_t> extents;
  std::vector<double> weights;
  std::vector<std::string> words;
  Node node;
  Mode mode = Mode::slow;
  std::optional<Mode> other;
  Part part;
  std::int64_t bytes = 0;
  bool larger = false;
};

std::int64_t bytes_of(const Params& params, const ParamSpec& option) {
  return static_cast<std::int64_t>(params.real(option.name) * 1024);
}

constexpr ParamSpec kOptions[] = {
    option<&Settings::on>("on", "true", {}, ""),
    option<&Settings::count>("count", "3", between(0, 9), ""),
    option<&Settings::size>("size", kRequired, between(0, 1e12), "How large."),
    option<&Settings::share>("share", "0.1", between(0, 1), ""),
    option<&Settings::name>("name", "", {}, ""),
    option<&Settings::extents>("extents", "[3, 4]", between(1, 9), ""),
    option<&Settings::weights>("weights", "[]", {}, ""),
    option<&Settings::words>("words", "[a]", {}, ""),
    option<&Settings::node>("node", "null", {}, ""),
    option<&Settings::mode>("mode", "fast", one_of("slow|fast|auto"), ""),
    option<&Settings::other>("other", "null", one_of("slow|fast|auto").or_null(), ""),
    option<&Settings::part, &Part::every>("every", "null", between(1, 1e12).or_null(), ""),
    option<&Settings::part, &Part::rate>("rate", "0.5", above(0), ""),
    option_as<bytes_of, &Settings::bytes>(ParamType::real, "kilobytes", "2.5", above(0), ""),
    option_as<is_second_choice, &Settings::larger>(ParamType::string, "best", "min", one_of("min|max"), ""),
};
static_assert(kOptions[1].type == ParamType::integer && kOptions[9].type == ParamType::string &&
              kOptions[11].type == ParamType::integer && kOptions[6].type == ParamType::reals);

Params params_of(const char* yaml) { return {parse_yaml(yaml, "a.yaml"), kOptions, "section x"}; }

TEST(Options, MembersTakeTheDefaultsOfTheTable) {
  const auto settings = params_of("{size: 7}").as<Settings>();
  EXPECT_TRUE(settings.on);
  EXPECT_EQ(settings.count, 3);
  EXPECT_EQ(settings.size, 7);
  EXPECT_EQ(settings.share, 0.1F);
  EXPECT_THAT(settings.extents, ElementsAre(3, 4));
  EXPECT_TRUE(settings.weights.empty());
  EXPECT_THAT(settings.words, ElementsAre("a"));
  EXPECT_TRUE(is_null(settings.node));
  EXPECT_EQ(settings.mode, Mode::fast);
  EXPECT_FALSE(settings.other);
  EXPECT_FALSE(settings.part.every);
  EXPECT_EQ(settings.part.rate, 0.5);
  EXPECT_EQ(settings.bytes, 2560);
  EXPECT_FALSE(settings.larger);
}

TEST(Options, MembersTakeWhatIsWritten) {
  const auto settings =
      params_of(
          "{on: false, count: 1, size: 2, share: 0.25, name: n, extents: 5, weights: [1, 2], "
          "words: [x, y], node: {a: 1}, mode: auto, other: slow, every: 8, rate: 3, "
          "kilobytes: 1, best: max}")
          .as<Settings>();
  EXPECT_FALSE(settings.on);
  EXPECT_EQ(settings.count, 1);
  EXPECT_EQ(settings.share, 0.25F);
  EXPECT_EQ(settings.name, "n");
  EXPECT_THAT(settings.extents, ElementsAre(5));
  EXPECT_THAT(settings.weights, ElementsAre(1, 2));
  EXPECT_THAT(settings.words, ElementsAre("x", "y"));
  EXPECT_EQ(settings.node.entries.size(), 1U);
  EXPECT_EQ(settings.mode, Mode::automatic);
  EXPECT_EQ(settings.other, Mode::slow);
  EXPECT_EQ(settings.part.every, 8);
  EXPECT_EQ(settings.part.rate, 3);
  EXPECT_EQ(settings.bytes, 1024);
  EXPECT_TRUE(settings.larger);
}

TEST(Options, MistakesHaveTheirPlace) {
  const std::string message = testing::message_of([] { params_of("{count: 10, mode: quick}"); });
  EXPECT_THAT(message, HasSubstr("a.yaml:1:9: section x, count: must be [0, 9], but is 10"));
  EXPECT_THAT(message, HasSubstr("a.yaml:1:19: section x, mode: 'quick' is not one of slow, fast, auto"));
  EXPECT_THAT(message, HasSubstr("section x needs 'size'"));
}

TEST(Options, AWrongOptionIsReportedOnce) {
  ErrorCollector mistakes;
  const Params params(parse_yaml("{size: x}", "a.yaml"), kOptions, "section x", mistakes);
  EXPECT_THROW(params.as<Settings>(), ReportedMistake);
  EXPECT_FALSE(mistakes.empty());
}

struct Lengths {
  double height = 0, width = 0, depth = 0;
};
double metres_of(const Params& params, const ParamSpec& option) {
  const std::string& text = params.string(option.name);
  if (!text.ends_with('m')) throw params.error(option.name, "is no length", "Write 3m.");
  return std::stod(text);
}
constexpr ParamSpec kLengths[] = {
    option_as<metres_of, &Lengths::height>(ParamType::string, "height", "1m", {}, ""),
    option_as<metres_of, &Lengths::width>(ParamType::string, "width", "1m", {}, ""),
    option_as<metres_of, &Lengths::depth>(ParamType::string, "depth", "1m", {}, ""),
};

TEST(Options, MistakesOfAllMembersAreReportedTogether) {
  const auto lengths = [](const char* yaml, ErrorCollector& mistakes) {
    const Params params(parse_yaml(yaml, "test"), kLengths, "box", mistakes);
    mistakes.attempt([&] { params.as<Lengths>(); });
    return testing::message_of([&] { mistakes.throw_if_any(); });
  };
  ErrorCollector conversions;
  const std::string two = lengths("{height: 2k, width: 3m, depth: 4k}", conversions);
  EXPECT_EQ(conversions.total(), 2U) << two;
  EXPECT_THAT(two, AllOf(HasSubstr("box, height: is no length"), HasSubstr("box, depth: is no length")));
  ErrorCollector mixed;
  const std::string other = lengths("{height: [2], depth: 4k}", mixed);
  EXPECT_EQ(mixed.total(), 2U) << other;
  EXPECT_THAT(other, HasSubstr("box, depth: is no length"));
  EXPECT_THROW(Params(parse_yaml("{width: 4k}", "test"), kLengths, "box").as<Lengths>(), Error);
}

TEST(Options, AMemberHasTheNameOfItsOption) {
  const Params params = params_of("{size: 7}");
  EXPECT_EQ((option_name<&Settings::part, &Part::every>(params)), "every");
  EXPECT_EQ(option_name<&Settings::bytes>(params), "kilobytes");
  EXPECT_EQ(testing::message_of([&] { option_name<&Part::rate>(params); }, ErrorKind::bug)
                    .find("no option of section x sets this member") == std::string::npos,
            false);
  EXPECT_THAT(testing::message_of([&] { params.as<Part>(); }, ErrorKind::bug), HasSubstr("no option"));
}

}  // namespace
}  // namespace lockstep
