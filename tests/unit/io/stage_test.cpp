// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/stage_copy.h"
#include "io/stage_folder.h"
#include "io/staged_files.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(StagePlace, VariablesOfTheEnvironmentAreReplaced) {
  ::setenv("LOCKSTEP_TEST_A", "/a", 1);
  ::setenv("LOCKSTEP_TEST_EMPTY", "", 1);
  ::unsetenv("LOCKSTEP_TEST_NONE");
  const auto expanded = [](const std::string& text) { return expanded_stage_place(text, "c.yaml:3:4"); };
  EXPECT_EQ(expanded("/plain/"), "/plain");
  EXPECT_EQ(expanded("$LOCKSTEP_TEST_A"), "/a");
  EXPECT_EQ(expanded("${LOCKSTEP_TEST_A}b/$LOCKSTEP_TEST_A.c"), "/ab//a.c");
  for (const auto& [text, what] : {std::pair{"$LOCKSTEP_TEST_NONE/x", "LOCKSTEP_TEST_NONE is not set"},
                                   {"$LOCKSTEP_TEST_EMPTY", "LOCKSTEP_TEST_EMPTY is not set"},
                                   {"/x/$", "a $ without a name"},
                                   {"/x/${A", "a $ without a name"},
                                   {"x/y", "no absolute path"}}) {
    const Error error = error_of([&, text = text] { expanded(text); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_EQ(error.where(), "c.yaml:3:4");
    EXPECT_THAT(error.what_happened(), HasSubstr(what));
  }
}

class StageFolderTest : public FolderTest {
 protected:
  std::unique_ptr<StageFolder> claim(const std::string& key, bool keep = false) const {
    return std::make_unique<StageFolder>(folder_, key, keep);
  }
  /// What a killed job leaves: a folder with files, and no locks.
  std::string leftover(const std::string& key, bool keep = false) const {
    const auto stage = claim(key, keep);
    std::ofstream(stage->path() + "/pieces.0") << "x";
    fs::create_directories(stage->path() + "/files/00");
    std::ofstream(stage->path() + "/files/00/1") << "y";
    stage->leave();
    return stage->path();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
};

TEST_F(StageFolderTest, IsRemovedWithAllThatIsInIt) {
  auto stage = claim("a");
  EXPECT_EQ(stage->path(), path("lockstep-stage-a"));
  fs::create_directories(stage->path() + "/files/00");
  std::ofstream(stage->path() + "/files/00/1") << "y";
  struct stat status {};
  ASSERT_EQ(::stat(stage->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  stage.reset();
  EXPECT_TRUE(names().empty());
}

TEST_F(StageFolderTest, AnotherJobHasAFolderOfItsOwn) {
  auto one = claim("a"), two = claim("a"), other = claim("b");
  EXPECT_EQ(two->path(), path("lockstep-stage-a-1"));
  one.reset();
  EXPECT_EQ(names(), (std::vector<std::string>{"lockstep-stage-a-1", "lockstep-stage-b"}));
}

TEST_F(StageFolderTest, AFolderIsInUseWhileAnyRankUsesIt) {
  auto first = claim("a");
  const auto use = std::make_unique<StageUse>(first->path());  // of a rank that outlives the first one
  first->leave();
  first.reset();
  EXPECT_EQ(claim("a")->path(), path("lockstep-stage-a-1"));
}

TEST_F(StageFolderTest, LeftoversAreUsedByTheirRunAndRemovedByOthers) {
  const std::string left = leftover("a");
  const auto again = claim("a");
  EXPECT_EQ(again->path(), left);
  EXPECT_TRUE(fs::exists(left + "/files/00/1"));
  const std::string others = leftover("b"), kept = leftover("c", true);
  const auto third = claim("d");
  EXPECT_TRUE(fs::exists(left));
  EXPECT_FALSE(fs::exists(others));
  EXPECT_TRUE(fs::exists(kept + "/files/00/1"));
}

TEST_F(StageFolderTest, AKeptFolderStaysUnlessTheWorkFailed) {
  auto stage = claim("a", true);
  stage.reset();
  EXPECT_EQ(names(), std::vector<std::string>{"lockstep-stage-a"});
  stage = claim("a", true);
  stage->give_up();
  stage.reset();
  EXPECT_TRUE(names().empty());
  leftover("a", true);
  claim("a")->leave();  // not to be kept any more
  EXPECT_EQ(names(), std::vector<std::string>{"lockstep-stage-a"});
  claim("b").reset();
  EXPECT_TRUE(names().empty());
}

TEST_F(StageFolderTest, AFolderOrLinkOfOthersIsNotUsed) {
  fs::create_directories(path("elsewhere"));
  fs::create_symlink(path("elsewhere"), path("lockstep-stage-a"));
  auto stage = claim("a");
  EXPECT_EQ(stage->path(), path("lockstep-stage-a-1"));
  stage.reset();
  EXPECT_TRUE(fs::is_empty(path("elsewhere")));
  const Error error = error_of([&] { StageFolder(path("none"), "a", false); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_EQ(error.where(), path("none"));
}

class StageCopyTest : public FolderTest {
 protected:
  void SetUp() override { fs::create_directories(stage()); }
  std::string stage() const { return path("stage"); }
  static std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    std::uint32_t state = 1;
    for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
    return bytes;
  }
  StagedFile file(const std::string& name) const {
    return {path(name), staged_name(path(name)), origin_of_file(path(name))};
  }
  std::string copy_of(const std::string& name) const { return stage() + "/files/" + staged_name(path(name)); }
  /// Copies the files as a job does. Returns how many pieces were copied.
  int copy(const std::vector<StagedFile>& files, bool verify = true) const {
    const StagedPieces known(stage());
    StageManifest manifest(stage(), 0);
    prepare_stage(stage(), files, known);
    const StageCopier copier({stage(), verify, 0}, known, manifest);
    std::vector<char> buffer;
    int copied = 0;
    for (const StagePiece& piece : stage_pieces(files))
      copied += copier.copy(files[static_cast<std::size_t>(piece.file)], piece, buffer) ? 1 : 0;
    for (const StagedFile& one : files) copier.check_size(one);
    return copied;
  }
};

TEST_F(StageCopyTest, FilesAreCopiedOnceAlsoEmptyAndLargeOnes) {
  const std::string large = random_bytes((std::size_t{16} << 20) + 5);
  write("large", large);
  write("empty", "");
  write("small", "abc");
  const std::vector<StagedFile> files{file("large"), file("empty"), file("small")};
  EXPECT_EQ(stage_pieces(files).size(), 5U);
  EXPECT_EQ(copy(files), 5);
  EXPECT_TRUE(bytes_of(copy_of("large")) == large);
  EXPECT_TRUE(fs::exists(copy_of("empty")));
  EXPECT_EQ(bytes_of(copy_of("small")), "abc");
  EXPECT_EQ(copy(files), 0);
  EXPECT_TRUE(bytes_of(copy_of("large")) == large);
}

TEST_F(StageCopyTest, OnlyWhatIsMissingOrDamagedIsCopiedAgain) {
  const std::string large = random_bytes((std::size_t{16} << 20) + 5);
  write("large", large);
  write("small", "abc");
  const std::vector<StagedFile> files{file("large"), file("small")};
  ASSERT_EQ(copy(files), 4);
  std::fstream damage(copy_of("large"), std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp((8 << 20) + 3).put('!');
  damage.close();
  EXPECT_EQ(copy(files, false), 0);  // not looked at
  EXPECT_EQ(copy(files), 1);
  EXPECT_TRUE(bytes_of(copy_of("large")) == large);
  fs::resize_file(copy_of("large"), 16 << 20);
  EXPECT_EQ(copy(files, false), 1);
  EXPECT_TRUE(bytes_of(copy_of("large")) == large);
  fs::remove(copy_of("small"));
  EXPECT_EQ(copy(files, false), 1);
}

TEST_F(StageCopyTest, AnotherFileOfTheSameNameIsCopiedAgain) {
  write("small", "abc");
  ASSERT_EQ(copy({file("small")}), 1);
  fs::remove(path("small"));
  write("small", "abd");  // another inode, or at least time
  fs::last_write_time(path("small"), fs::last_write_time(path("small")) + std::chrono::seconds(1));
  const StagedFile now = file("small");
  EXPECT_FALSE(StagedPieces(stage()).checksum(now.name, now.origin, 0, 3));
  EXPECT_EQ(copy({now}), 1);
  EXPECT_TRUE(StagedPieces(stage()).checksum(now.name, now.origin, 0, 3));
  EXPECT_EQ(bytes_of(copy_of("small")), "abd");
  EXPECT_EQ(copy({file("small")}), 0);
}

TEST_F(StageCopyTest, CopiesThatAreNotNeededAreRemoved) {
  write("one", "1");
  write("two", "2");
  ASSERT_EQ(copy({file("one"), file("two")}), 2);
  write("stage/files/00/unknown", "x");
  EXPECT_EQ(copy({file("two")}), 0);
  EXPECT_FALSE(fs::exists(copy_of("one")));
  EXPECT_TRUE(fs::exists(copy_of("two")));
  EXPECT_FALSE(fs::exists(path("stage/files/00/unknown")));
}

TEST_F(StageCopyTest, TornAndOldLinesOfTheManifestDoNotCount) {
  write("one", "1");
  write("two", "2");
  const std::vector<StagedFile> files{file("one"), file("two")};
  ASSERT_EQ(copy(files), 2);
  const std::string lines = read("stage/pieces.0");
  const auto last = lines.rfind('\n', lines.size() - 2);
  write("stage/pieces.0", lines.substr(0, last + 40));
  EXPECT_EQ(copy(files), 1);
  EXPECT_EQ(copy(files), 0);  // what was appended to the torn line counts
  std::string other_start = lines;
  other_start[other_start.find('\n') - 1] ^= 1;
  write("stage/pieces.0", other_start);
  EXPECT_EQ(copy(files), 2);
  EXPECT_EQ(copy(files), 0);
}

TEST_F(StageCopyTest, AFileThatChangesWhileItIsCopiedIsAnError) {
  write("one", "1234");
  StagedFile before = file("one");
  write("one", "12");
  expect_data_error([&] { copy({before}); }, path("one"), "changed while it was copied");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expect_data_error([&] { file("pipe"); }, path("pipe"), "is not a regular file");
  expect_data_error([&] { file("none"); }, path("none"), "cannot open: No such file");
}

TEST_F(StageCopyTest, NoRoomIsAnErrorThatSaysHowMuchIsNeeded) {
  write("one", "1");
  write("two", "2");
  const std::vector<StagedFile> files{file("one"), file("two")};
  require_stage_room(folder_, 2, files);
  expect_data_error([&] { require_stage_room(folder_, std::int64_t{1} << 60, files); }, folder_,
                    "copies of " + path("one") + " and 1 more files: 1152921504606846976 bytes are needed, ");
}

TEST_F(StageCopyTest, CopiesAreOpenedAndMessagesNameTheFiles) {
  write("one", "1");
  use_staged_files(stage(), {path("one")});
  EXPECT_EQ(path_to_open(path("one")), stage() + "/" + staged_name(path("one")));
  EXPECT_EQ(path_to_open(path("two")), path("two"));
  EXPECT_EQ(staged_note(path("two")), "");
  EXPECT_EQ(staged_note(path("one")), " (its copy " + path_to_open(path("one")) + ")");
  forget_staged_files();
  EXPECT_EQ(path_to_open(path("one")), path("one"));
  EXPECT_NE(staged_name(path("one")), staged_name(path("two")));
}

}  // namespace
}  // namespace lockstep::testing
