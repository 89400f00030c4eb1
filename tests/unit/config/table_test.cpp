// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/table.h"

#include <gmock/gmock.h>

#include "support/error_support.h"

namespace lockstep {

struct ColourEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
};

#define COLOURS(COLOUR) \
  COLOUR(kRedColour)    \
  COLOUR(kGreenColour)
LOCKSTEP_TABLE(ColourEntry, colour_table, "colour", COLOURS)

extern const ColourEntry kRedColour = {"red", "", {}};
extern const ColourEntry kGreenColour = {"green", "", {}};

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NamedOptions named(std::string name) { return {std::move(name), "a.yaml:1:2", {}}; }

TEST(Table, EntriesKeepTheOrderOfTheList) {
  EXPECT_THAT(Table<ColourEntry>("colour", {&kGreenColour, &kRedColour}).names(),
              ElementsAre("green", "red"));
  EXPECT_EQ(colour_table().names()[0], "red");
  EXPECT_EQ(colour_table().names()[1], "green");
}

TEST(Table, AnUnknownNameGetsTheNearest) {
  const Table<ColourEntry> table("colour", {&kRedColour, &kGreenColour});
  EXPECT_EQ(table.at(named("red")).name, "red");
  EXPECT_EQ(table.find("gren"), nullptr);
  EXPECT_EQ(testing::message_of([&] { table.at(named("gren")); }),
            "a.yaml:1:2: unknown colour 'gren'\n  Did you mean 'green'? Known: red, green.");
}

TEST(Table, OthersAreAddedUnlessTheirNameIsTaken) {
  colour_table().add({"mauve", "", {}});
  EXPECT_EQ(colour_table().find("mauve")->name, "mauve");
  EXPECT_EQ(testing::message_of([] {
              colour_table().add({"red", "", {}});
            }),
            "a colour named 'red' exists already");
  Table<ColourEntry> others("optimizer", {&kRedColour});
  EXPECT_THAT(testing::message_of([&] { others.add(kRedColour); }), HasSubstr("an optimizer named 'red'"));
}

}  // namespace
}  // namespace lockstep
