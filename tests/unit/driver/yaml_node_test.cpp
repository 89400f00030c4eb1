// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/config/yaml_node.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

std::string parse_error(const std::string& text) {
  return message_of([&] { parse_yaml(text, "a.yaml"); });
}

// Same values, whatever the style: quotes matter only where they make text of something else.
bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size() || a.entries.size() != b.entries.size())
    return false;
  if (a.kind == Node::Kind::scalar) return a.text == b.text && to_yaml(a) == to_yaml(b);
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.entries.size(); ++i)
    if (a.entries[i].first != b.entries[i].first || !same(a.entries[i].second, b.entries[i].second))
      return false;
  return true;
}

TEST(ParseYaml, KindsQuotesAndPositions) {
  const Node root = parse_yaml("a: 1\nb:\n  - x\n  - \"2\"\n  - {c: }\nd: ~\n", "a.yaml");
  ASSERT_EQ(root.kind, Node::Kind::map);
  EXPECT_EQ(root.where, "a.yaml:1:1");
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("a")->where, "a.yaml:1:4");
  EXPECT_FALSE(root.find("a")->quoted);
  EXPECT_EQ(root.entry_where[1], "a.yaml:2:1");
  const Node& b = *root.find("b");
  ASSERT_EQ(b.kind, Node::Kind::list);
  ASSERT_EQ(b.items.size(), 3U);
  EXPECT_TRUE(b.items[1].quoted);
  EXPECT_EQ(b.items[1].where, "a.yaml:4:5");
  EXPECT_EQ(b.items[2].find("c")->kind, Node::Kind::null);
  EXPECT_EQ(root.find("d")->kind, Node::Kind::null);
  EXPECT_EQ(root.find("e"), nullptr);
}

TEST(ParseYaml, AliasesAreCopied) {
  const Node root = parse_yaml("a: &x {k: 1}\nb: *x\n", "a.yaml");
  EXPECT_EQ(root.find("b")->find("k")->text, "1");
}

TEST(ParseYaml, TagsThatSayWhatIsMeant) {
  EXPECT_TRUE(parse_yaml("!!str 12", "a.yaml").quoted);
  EXPECT_FALSE(parse_yaml("!!int 12", "a.yaml").quoted);
  EXPECT_THAT(parse_error("a: !python/object x"), HasSubstr("unknown tag"));
}

TEST(ParseYaml, ErrorsHavePositions) {
  EXPECT_THAT(parse_error("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("a.yaml:3:"));
  EXPECT_THAT(parse_error("a:\n\t- b\n"), HasSubstr("a.yaml:2:2: not valid YAML"));
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 3\n"),
            "a.yaml:3:1: key 'a' is written twice\n  The first is at a.yaml:1:1; keep one.");
  EXPECT_THAT(parse_error("m: {k: 1, k: 2}"), HasSubstr("a.yaml:1:11: key 'k' is written twice"));
  EXPECT_THAT(parse_error("[1, 2]: x\n"), HasSubstr("a key must be a single word"));
  EXPECT_THAT(parse_error("a: 1\n---\nb: 2\n"), HasSubstr("a.yaml:2:1: there is more after the end"));
  EXPECT_THAT(parse_error("a: 1\n]"), HasSubstr("a.yaml:2:1: "));  // yaml-cpp's LoadAll would never end here
  EXPECT_THAT(parse_error("&a [*a]"), HasSubstr("a.yaml:"));
}

TEST(ParseYaml, LimitsOfDepthAndSize) {
  for (const char* text : {"[", "{a: ", "- "}) {
    std::string deep;
    for (int i = 0; i < 5000; ++i) deep += text;
    EXPECT_THAT(parse_error(deep), HasSubstr(": nested deeper than 100 levels")) << text;
  }
  EXPECT_NO_THROW(parse_yaml(std::string(100, '[') + std::string(100, ']'), "a.yaml"));
  std::string many;
  for (int i = 0; i < 600'000; ++i) many += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(parse_error(many), HasSubstr(": more than 1000000 keys and values"));
  std::string aliases = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    std::string list;
    for (int k = 0; k < 10; ++k) list += fmt::format(", *a{}", i - 1);
    aliases += fmt::format("a{}: &a{} [{}]\n", i, i, list.substr(2));
  }
  EXPECT_THAT(parse_error(aliases), HasSubstr("Is there an alias"));
}

TEST(ParseYaml, AnEmptyTextIsNull) {
  EXPECT_EQ(parse_yaml("", "a.yaml").kind, Node::Kind::null);
  EXPECT_EQ(parse_yaml("# nothing\n", "a.yaml").where, "a.yaml");
}

TEST(ReadYaml, MissingFileAndFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { read_yaml(folder.path() / "no.yaml"); }), HasSubstr("No such file"));
  EXPECT_THAT(message_of([&] { read_yaml(folder.path()); }), HasSubstr("is a folder"));
  EXPECT_THAT(message_of([&] { read_yaml("/dev/zero"); }), HasSubstr("is a device or socket"));
  EXPECT_THAT(message_of([&] { read_yaml(folder.write("big.yaml", std::string(17 << 20, '#'))); }),
              HasSubstr("more than 16 MiB"));
  const std::string file = folder.write("a.yaml", "a: 1\n");
  EXPECT_EQ(read_yaml(file).find("a")->where, file + ":1:4");
}

TEST(ToYaml, BlockStyle) {
  const std::string text =
      "a: 1\nlist: [1, \"2\", x]\nempty: []\nmap:\n  none: null\n  nothing: {}\nlayers:\n  - conv2d:\n      "
      "name: conv1\n"
      "  - relu\n  -\n";
  EXPECT_EQ(to_yaml(parse_yaml(text, "a")),
            "a: 1\nlist: [1, \"2\", x]\nempty: []\nmap:\n  none: null\n  nothing: {}\nlayers:\n  - conv2d:\n "
            "     name: "
            "conv1\n  - relu\n  - null\n");
}

TEST(ToYaml, ReadsBackTheSame) {
  for (const char* text : {"a: 1",
                           "- 1\n- - 2\n  - 3\n- {a: [1, {b: 2}]}",
                           "a: \"on\"",
                           "a: on",
                           "a: \"1\"",
                           "a: \"\"",
                           "a: ",
                           "a: .5e3",
                           "a: \"line\\nbreak\\ttab \\\"q\\\" \\\\ \\x01\"",
                           "a: 'x: y #z'",
                           "a: ~",
                           "\"12\": x",
                           "\"a b\": x",
                           "a: 12:30",
                           "a: ../data/x.csv",
                           "a: '- x'",
                           "a: 'null'",
                           "x",
                           "[]",
                           "{}",
                           "a: \"\xC3\xA4\xE2\x82\xAC\"",
                           "- - - 1\n    - {a: b}\n- {}\n",
                           "a: |\n  two\n  lines\n",
                           "a: 0x1F"}) {
    const Node first = parse_yaml(text, "a");
    const Node second = parse_yaml(to_yaml(first), "b");
    EXPECT_TRUE(same(first, second)) << text << "\nbecame\n"
                                     << to_yaml(first) << "\nthen\n"
                                     << to_yaml(second);
  }
}

TEST(ToYaml, TextThatOlderReadersTakeForSomethingElseIsQuoted) {
  EXPECT_EQ(to_yaml(parse_yaml("a: on", "a")), "a: \"on\"\n");
  EXPECT_EQ(to_yaml(parse_yaml("a: 1_000", "a")), "a: \"1_000\"\n");
  EXPECT_EQ(to_yaml(parse_yaml("a: 'true'", "a")), "a: \"true\"\n");
}

Node with(const std::string& text, const std::string& assignment) {
  Node root = parse_yaml(text, "a.yaml");
  apply_override(root, assignment);
  return root;
}

TEST(Override, ReplacesAndAdds) {
  EXPECT_EQ(to_yaml(with("a: {b: 1}", "a.b=2")), "a:\n  b: 2\n");
  EXPECT_EQ(to_yaml(with("a: {b: 1}", "a.c.d=[1, x]")), "a:\n  b: 1\n  c:\n    d: [1, x]\n");
  EXPECT_EQ(to_yaml(with("a:", "a.b=x")), "a:\n  b: x\n");
  EXPECT_EQ(to_yaml(with("a: 1", "a=")), "a: null\n");
  EXPECT_EQ(to_yaml(with("a: 1", "a={b: 2}")), "a:\n  b: 2\n");
  EXPECT_EQ(to_yaml(with("a: 1", "a=x=y")), "a: \"x=y\"\n");
}

TEST(Override, ListsByIndexAndByName) {
  const std::string layers =
      "layers:\n- {type: dense, name: one, units: 1}\n- conv2d: {name: two, filters: 1}\n";
  EXPECT_EQ(with(layers, "layers.0.units=5").find("layers")->items[0].find("units")->text, "5");
  EXPECT_EQ(with(layers, "layers.one.units=6").find("layers")->items[0].find("units")->text, "6");
  EXPECT_EQ(
      with(layers, "layers.two.filters=7").find("layers")->items[1].find("conv2d")->find("filters")->text,
      "7");
  EXPECT_THAT(message_of([&] { with(layers, "layers.three.units=1"); }),
              HasSubstr("the list 'layers' has no item 'three'"));
  EXPECT_THAT(message_of([&] { with(layers, "layers.2.units=1"); }), HasSubstr("an index from 0 to 1"));
}

std::string layers_with(const std::string& layers, const std::string& assignment) {
  const Node root = with("model: {layers: " + layers + "}", "model.layers." + assignment);
  return to_yaml(*root.find("model")->find("layers"));
}

TEST(Override, NamesThatCheckPrints) {
  const std::string layers =
      "[dropout: {rate: 0.1}, dense: {units: 1}, relu, dropout: {rate: 0.2}, relu: {name: r}]";
  EXPECT_THAT(layers_with(layers, "dropout2.rate=0.5"), HasSubstr("- dropout:\n    rate: 0.5\n"));
  EXPECT_THAT(layers_with(layers, "dense.units=5"), HasSubstr("units: 5"));
  EXPECT_THAT(layers_with(layers, "relu1.name=first"), HasSubstr("- relu:\n    name: first"));
  EXPECT_THAT(layers_with(layers, "r=elu"), HasSubstr("- elu\n"));
  EXPECT_THAT(
      message_of([&] { layers_with(layers, "dropout.rate=1"); }),
      HasSubstr("has no item 'dropout'\n  Did you mean 'dropout1'? Give an index from 0 to 4, or the name of "
                "an item: dropout1, dense1, relu1, dropout2, r, dense."));
}

TEST(Override, TheNameOfAChoiceMayBeLeftOut) {
  EXPECT_EQ(to_yaml(with("optimizer: adam", "optimizer.learning_rate=1")),
            "optimizer:\n  adam:\n    learning_rate: 1\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {beta1: 0}}", "optimizer.learning_rate=1")),
            "optimizer:\n  adam:\n    beta1: 0\n    learning_rate: 1\n");
  // A key of the section stands beside the rule, and an option is the rule's.
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {beta1: 0}}", "optimizer.shard=true")),
            "optimizer:\n  adam:\n    beta1: 0\n  shard: true\n");
  EXPECT_EQ(to_yaml(with("optimizer: {shard: true, adam: {beta1: 0}}", "optimizer.learning_rate=1")),
            "optimizer:\n  shard: true\n  adam:\n    beta1: 0\n    learning_rate: 1\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: }", "optimizer.adam.beta1=1")),
            "optimizer:\n  adam:\n    beta1: 1\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {learning_rate: {exponential_decay: {initial: 1}}}}",
                         "optimizer.learning_rate.initial=2")),
            "optimizer:\n  adam:\n    learning_rate:\n      exponential_decay:\n        initial: 2\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {learning_rate: {exponential_decay: {initial: 1}}}}",
                         "optimizer.adam.beta1=2")),
            "optimizer:\n  adam:\n    learning_rate:\n      exponential_decay:\n        initial: 1\n    "
            "beta1: 2\n");
  EXPECT_EQ(to_yaml(with("model: {loss: focal}", "model.loss.gamma=1")),
            "model:\n  loss:\n    focal:\n      gamma: 1\n");
  // A section with one key is no choice.
  EXPECT_EQ(to_yaml(with("warm_start: {rename: {a: b}}", "warm_start.checkpoint=x")),
            "warm_start:\n  rename:\n    a: b\n  checkpoint: x\n");
}

TEST(Override, PositionIsTheCommandLine) {
  const Node root = with("a: 1", "m.n=[{k: 1}]");
  const Node& list = *root.find("m")->find("n");
  EXPECT_EQ(list.where, "--set m.n=[{k: 1}]");
  EXPECT_EQ(list.items[0].entry_where[0], "--set m.n=[{k: 1}]");
  EXPECT_EQ(root.entry_where[1], "--set m.n=[{k: 1}]");
}

TEST(Override, WrongForms) {
  EXPECT_THAT(message_of([] { with("a: 1", "a"); }, ErrorKind::usage),
              HasSubstr("--set a: not of the form key=value"));
  EXPECT_THAT(message_of([] { with("a: 1", "=1"); }, ErrorKind::usage), HasSubstr("not of the form"));
  EXPECT_THAT(message_of([] { with("a: 1", "a\nb\x1b"); }, ErrorKind::usage),
              HasSubstr("--set a b : not of"));
  EXPECT_THAT(message_of([] { with("a: 1", std::string(50'000, 'a')); }, ErrorKind::usage),
              HasSubstr("aaa...: not of"));
  EXPECT_THAT(message_of([] { with("a: 1", "a..b=1"); }), HasSubstr("not a path of keys"));
  EXPECT_THAT(message_of([] { with("a: 1", "a.b=1"); }),
              HasSubstr("'a' is a single value: there is no 'b' in it"));
  EXPECT_THAT(message_of([] { with("a: 1", "a=[1"); }), HasSubstr("--set a=[1: not valid YAML"));
}

}  // namespace
}  // namespace lockstep
