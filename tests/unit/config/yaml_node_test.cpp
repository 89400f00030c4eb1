// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_node.h"

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

}  // namespace
}  // namespace lockstep
