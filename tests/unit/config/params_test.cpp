// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml_node.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ParamSpec kTable[] = {
    {"learning_rate", ParamType::real, "0.001", above(0), "step size"},
    {"beta", ParamType::real, "0.9", at_least(0).below(1), "decay of the mean"},
    {"steps", ParamType::integer, "null", at_least(1, "steps"), "how many"},
    {"nesterov", ParamType::boolean, "false", {}, "look ahead"},
    {"padding", ParamType::string, "same", one_of("same|valid"), "borders"},
    {"kernel", ParamType::integers, "[3, 3]", above(0), "window"},
    {"weights", ParamType::reals, "[]", {}, "class weights"},
    {"tags", ParamType::strings, "[a, b]", {}, "labels"},
    {"every", ParamType::integer, "1", at_least(0).or_null(), "how often"},
    {"extra", ParamType::node, "null", {}, "anything"},
    {"note", ParamType::string, "", {}, "free text"},
};

Node list(std::vector<std::string> texts) {
  Node node;
  node.kind = Node::Kind::list;
  for (std::string& text : texts) node.items.push_back(Node::scalar(std::move(text)));
  return node;
}

Node map(std::vector<std::pair<std::string, Node>> entries) {
  Node node;
  node.kind = Node::Kind::map;
  node.where = "a.yaml:1:1";
  int line = 2;
  for (auto& [key, value] : entries) {
    node.entry_where.push_back(fmt::format("a.yaml:{}:3", line));
    value.where = fmt::format("a.yaml:{}:9", line++);
    node.entries.emplace_back(key, std::move(value));
  }
  return node;
}

Params read(std::vector<std::pair<std::string, Node>> entries) {
  return {map(std::move(entries)), kTable, "optimizer x"};
}
Params read(const std::string& key, const std::string& text) { return read({{key, Node::scalar(text)}}); }

std::string message_of(const std::string& key, Node value) {
  try {
    read({{key, std::move(value)}});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}
std::string message_of(const std::string& key, const std::string& text) {
  return message_of(key, Node::scalar(text));
}

TEST(Params, DefaultsApplyWhenNothingIsWritten) {
  const Params params(Node{}, kTable, "optimizer x");
  EXPECT_EQ(params.real("learning_rate"), 0.001);
  EXPECT_FALSE(params.has("steps"));
  EXPECT_FALSE(params.boolean("nesterov"));
  EXPECT_EQ(params.string("padding"), "same");
  EXPECT_THAT(params.integers("kernel"), ElementsAre(3, 3));
  EXPECT_TRUE(params.reals("weights").empty());
  EXPECT_THAT(params.strings("tags"), ElementsAre("a", "b"));
  EXPECT_FALSE(params.has("extra"));
  EXPECT_EQ(params.node("extra").kind, Node::Kind::null);
  EXPECT_TRUE(params.has("note"));
  EXPECT_EQ(params.string("note"), "");
  EXPECT_FALSE(params.given("learning_rate"));
}

TEST(Params, WrittenValuesHavePositions) {
  const Params params = read({{"learning_rate", Node::scalar("1e-3")}, {"beta", Node::scalar("0")}});
  EXPECT_EQ(params.real("learning_rate"), 1e-3);
  EXPECT_EQ(params.real("beta"), 0.0);
  EXPECT_TRUE(params.given("beta"));
  EXPECT_EQ(params.where("beta"), "a.yaml:3:9");
  EXPECT_EQ(params.where("padding"), "a.yaml:1:1");
  EXPECT_STREQ(params.error("beta", "is odd", "Use 1.").what(),
               "a.yaml:3:9: optimizer x, beta: is odd\n  Use 1.");
}

TEST(Params, SingleValueCountsAsList) {
  EXPECT_THAT(read("kernel", "5").integers("kernel"), ElementsAre(5));
  EXPECT_THAT(message_of("beta", list({"0.5"})), HasSubstr("must be a finite number, but is a list of 1"));
}

TEST(Params, UnknownKeySuggestsTheNearest) {
  EXPECT_STREQ(
      message_of("learning_rat", "1").c_str(),
      "a.yaml:2:3: unknown key 'learning_rat' in optimizer x\n  Did you mean 'learning_rate'? Known keys: "
      "learning_rate, beta, steps, nesterov, padding, kernel, weights, tags, every, extra and 1 more (see "
      "`lockstep explain x`)");
  EXPECT_THAT(message_of("zzz", "1"), HasSubstr("\n  Known keys: learning_rate"));
}

TEST(Params, WrongTypeIsReportedWithPosition) {
  EXPECT_THAT(message_of("beta", "high"),
              HasSubstr("a.yaml:2:9: optimizer x, beta: must be a finite number, but is 'high'"));
  EXPECT_THAT(message_of("beta", ".inf"), HasSubstr("must be a finite number"));
  EXPECT_THAT(message_of("beta", ".nan"), HasSubstr("must be a finite number"));
  EXPECT_THAT(message_of("beta", "1e999"), HasSubstr("must be [0, 1), but is 1e999"));
  EXPECT_THAT(message_of("steps", "1.0"), HasSubstr("must be a whole number"));
  EXPECT_THAT(message_of("steps", "99999999999999999999"), HasSubstr("64 bits"));
  EXPECT_THAT(message_of("nesterov", "yes"), HasSubstr("must be true or false"));
  EXPECT_THAT(message_of("note", "12"), HasSubstr("Put it in quotes"));
  EXPECT_THAT(message_of("kernel", list({"3", "x"})), HasSubstr("must be a whole number, but is 'x'"));
  Node quoted = Node::scalar("12");
  quoted.quoted = true;
  EXPECT_EQ(read({{"note", quoted}}).string("note"), "12");
  EXPECT_THAT(message_of("steps", quoted), HasSubstr("the text \"12\""));
}

TEST(Params, RangesAreEnforced) {
  EXPECT_THAT(message_of("learning_rate", "0"), HasSubstr("must be > 0, but is 0"));
  EXPECT_THAT(message_of("beta", "1"), HasSubstr("must be [0, 1), but is 1"));
  EXPECT_THAT(message_of("beta", "-0.1"), HasSubstr("must be [0, 1)"));
  EXPECT_THAT(message_of("steps", "0"), HasSubstr("must be >= 1 steps"));
  EXPECT_EQ(read("steps", "1").integer("steps"), 1);
  EXPECT_THAT(message_of("kernel", list({"3", "0"})), HasSubstr("must be > 0"));
  EXPECT_THAT(message_of("padding", "vaild"),
              HasSubstr("'vaild' is not one of same, valid\n  Did you mean 'valid'?"));
}

TEST(Params, RangesMayHaveRemarks) {
  constexpr ParamSpec table[] = {
      {"rows", ParamType::integers, "null", in_words("[first, last)"), ""},
      {"std", ParamType::reals, "null", above(0).note("one per channel, or one"), ""},
      {"share", ParamType::real, "null", above(0).up_to(1e-1, "of the batch"), ""}};
  const auto check = [&](const std::string& key, std::vector<std::string> texts) {
    return Params(map({{key, list(std::move(texts))}}), table, "reader");
  };
  EXPECT_THAT(check("rows", {"-5", "7"}).integers("rows"), ElementsAre(-5, 7));
  EXPECT_THAT(check("std", {"0.5"}).reals("std"), ElementsAre(0.5));
  EXPECT_THROW(check("std", {"0.5", "0"}), Error);
  EXPECT_EQ(Params(map({{"share", Node::scalar("0.1")}}), table, "reader").real("share"), 0.1);
  EXPECT_THROW(Params(map({{"share", Node::scalar("0.11")}}), table, "reader"), Error);
}

TEST(Params, ChoiceMayLookLikeAnotherType) {
  constexpr ParamSpec table[] = {{"bias", ParamType::string, "auto", one_of("auto|true|false"), ""}};
  EXPECT_EQ(Params(map({{"bias", Node::scalar("true")}}), table, "layer").string("bias"), "true");
  EXPECT_THROW(Params(map({{"bias", Node::scalar("TRUE")}}), table, "layer"), Error);
}

TEST(Params, NullOnlyWhereAllowed) {
  EXPECT_FALSE(read("steps", "null").has("steps"));
  EXPECT_FALSE(read("every", "~").has("every"));
  EXPECT_THAT(message_of("beta", Node{}), HasSubstr("beta: needs a value"));
}

TEST(Params, NullThatIsWrittenMeansTheDefaultElsewhere) {
  const Params params = read("beta", "null");
  EXPECT_EQ(params.real("beta"), Params(Node{}, kTable, "optimizer x").real("beta"));
  EXPECT_FALSE(params.given("beta"));
  EXPECT_EQ(with_defaults(parse_yaml("{beta: null}", "test"), kTable).find("beta")->text, "0.9");
  constexpr ParamSpec table[] = {{"path", ParamType::string, kRequired, {}, "the file to read"}};
  EXPECT_THROW(Params(parse_yaml("{path: null}", "test"), table, "reader csv"), Error);
}

TEST(Params, AKeyWithoutAValueIsAMistake) {
  for (const char* const text : {"beta:", "{beta: }", "beta:\nsteps: 3", "beta: # 0.5", "{beta: , steps: 3}"})
    EXPECT_THROW(Params(parse_yaml(text, "test"), kTable, "optimizer x"), Error) << text;
  for (const char* const text : {"beta: null", "{beta: ~}", "beta: null\nsteps: 3", "{steps: 3, beta: null}"})
    EXPECT_NO_THROW(Params(parse_yaml(text, "test"), kTable, "optimizer x")) << text;
}

TEST(Params, RequiredOptionsAndMapForm) {
  constexpr ParamSpec table[] = {{"path", ParamType::string, kRequired, {}, "the file to read"}};
  EXPECT_THROW(Params(Node{}, table, "reader csv"), Error);
  try {
    Params(list({"a"}), table, "reader csv");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("reader csv must be a map of options, but is a list of 1"));
  }
}

TEST(Params, ReadingAnUndeclaredOptionIsABug) {
  const Params params(Node{}, kTable, "optimizer x");
  for (const char* name : {"absent", "padding", "steps"}) try {
      params.real(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bug);
    }
}

TEST(Nearest, DistanceIsAtMostAThirdOfTheLength) {
  constexpr std::string_view words[] = {"batch_size", "epochs", "steps"};
  EXPECT_EQ(nearest("bacth_size", words), "batch_size");
  EXPECT_EQ(nearest("epoch", words), "epochs");
  EXPECT_EQ(nearest("stpes", words), "steps");
  EXPECT_EQ(nearest("stps", words), "steps");
  EXPECT_EQ(nearest("xtps", words), "");
  EXPECT_EQ(nearest("xyz", words), "");
  EXPECT_EQ(nearest("", words), "");
}

}  // namespace
}  // namespace lockstep
