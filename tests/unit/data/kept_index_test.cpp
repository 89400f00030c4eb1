// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/kept_index.h"

#include <limits>

#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::Eq;
using ::testing::Optional;

class KeptIndexTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    for (const char* name : {"a", "b"}) write(name, std::string(std::size_t{1} << 20, 'x'));
  }
  std::vector<std::string> paths() const { return {path("a"), path("b")}; }
  std::string folder() const { return path("index"); }
  void keep() const {
    const IndexFolder index(folder(), true);
    KeptIndex kept("kind", "options", paths());
    kept.set_file(0, "of a");
    kept.set_file(1, "of b");
    kept.set_all("of all");
    kept.keep();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder()), {}));
  }
};

TEST_F(KeptIndexTest, NumbersAndTexts) {
  const std::vector<std::int64_t> values = {0,
                                            1,
                                            -1,
                                            63,
                                            64,
                                            -65,
                                            std::numeric_limits<std::int64_t>::max(),
                                            std::numeric_limits<std::int64_t>::min()};
  IndexWriter writer;
  for (const std::int64_t value : values) writer.number(value);
  writer.text(std::string_view("a\0b", 3));
  writer.numbers({5, 5, 900, 1 << 30});
  IndexReader reader(writer.bytes());
  for (const std::int64_t value : values) EXPECT_EQ(reader.number(), value);
  EXPECT_EQ(reader.text(), std::string("a\0b", 3));
  EXPECT_EQ(reader.numbers(), (std::vector<std::int64_t>{5, 5, 900, 1 << 30}));
  EXPECT_TRUE(reader.ended());
  for (std::size_t size = 0; size < writer.bytes().size(); ++size) {
    IndexReader cut(std::string_view(writer.bytes()).substr(0, size));
    for (std::size_t i = 0; i < values.size(); ++i) cut.number();
    cut.text();
    cut.numbers();
    EXPECT_FALSE(cut.ended()) << size;
  }
}

TEST_F(KeptIndexTest, WhatIsKeptHoldsWhileFilesAreAsTheyWere) {
  keep();
  const IndexFolder index(folder(), false);
  {
    const KeptIndex kept("kind", "options", paths());
    EXPECT_THAT(kept.of_file(0), Optional(Eq("of a")));
    EXPECT_THAT(kept.of_file(1), Optional(Eq("of b")));
    EXPECT_THAT(kept.of_all(), Optional(Eq("of all")));
  }
  EXPECT_FALSE(KeptIndex("other", "options", paths()).of_all());
  EXPECT_FALSE(KeptIndex("kind", "others", paths()).of_all());
  EXPECT_FALSE(KeptIndex("kind", "options", {path("b"), path("a")}).of_all());
  const auto changed = std::filesystem::last_write_time(path("b"));
  const auto expect_changed = [&] {
    const KeptIndex kept("kind", "options", paths());
    EXPECT_EQ(kept.changed(), path("b"));
    EXPECT_THAT(kept.of_file(0), Optional(Eq("of a")));
    EXPECT_FALSE(kept.of_file(1));
    EXPECT_FALSE(kept.of_all());
  };
  std::filesystem::last_write_time(path("b"), changed + std::chrono::seconds(1));
  expect_changed();
  write("b", std::string((std::size_t{1} << 20) - 1, 'x'));  // another size
  std::filesystem::last_write_time(path("b"), changed);
  expect_changed();
  write("b", std::string((std::size_t{1} << 20) - 1, 'x') + "y");  // another end
  std::filesystem::last_write_time(path("b"), changed);
  expect_changed();
}

TEST_F(KeptIndexTest, DamageAndOtherFilesAreIgnored) {
  keep();
  const std::string name =
      "index/" + std::filesystem::directory_iterator(folder())->path().filename().string();
  const std::string whole = read(name);
  const IndexFolder index(folder(), false);
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0x11);
    write(name, damaged);
    EXPECT_FALSE(KeptIndex("kind", "options", paths()).of_all()) << byte;
    write(name, whole.substr(0, byte));
    EXPECT_FALSE(KeptIndex("kind", "options", paths()).of_file(0)) << byte;
  }
}

TEST_F(KeptIndexTest, OnlyWritersWriteAndUnusedFilesAreRemoved) {
  {
    const IndexFolder index(folder(), false);
    KeptIndex kept("kind", "options", paths());
    kept.set_all("all");
    kept.keep();
    EXPECT_FALSE(std::filesystem::exists(folder()));
  }
  keep();
  EXPECT_EQ(files(), 1U);
  const IndexFolder index(folder(), true);
  KeptIndex kept("kind", "others", paths());
  write("b", std::string(std::size_t{1} << 20, 'z'));  // while it is read
  kept.set_all("all");
  kept.keep();
  EXPECT_EQ(files(), 1U);
  KeptIndex again("kind", "others", paths());
  again.set_all("all");
  again.keep();
  EXPECT_EQ(files(), 2U);
  index.remove_unused();
  EXPECT_EQ(files(), 1U);
  EXPECT_THAT(KeptIndex("kind", "others", paths()).of_all(), Optional(Eq("all")));
}

TEST_F(KeptIndexTest, SmallSetsAndNoFolderKeepNothing) {
  KeptIndex none("kind", "options", paths());
  none.set_file(0, "of a");
  none.set_all("all");
  none.keep();
  const IndexFolder index(folder(), true);
  write("a", "small");
  write("b", "small");
  KeptIndex small("kind", "options", paths());
  small.set_file(1, "of b");
  small.set_all("all");
  small.keep();
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

}  // namespace
}  // namespace lockstep::testing
