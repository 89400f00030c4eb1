// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every reader names the files that it opens (ReaderEntry::files), and opens their copies.
#include "io/stage_manifest.h"
#include "io/staged_files.h"
#include "support/test_folders.h"
#include "unit/data/hdf5_files.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StagedSetsTest : public Hdf5Files {
 protected:
  ~StagedSetsTest() override { forget_staged_files(); }

  /// Copies the files that the reader names, empties them, and reads the same from the copies.
  void expect_copies_are_read(const std::string& format, const Options& options, std::size_t count) {
    SCOPED_TRACE(format);
    const Params params = params_for(format, options);
    const std::string before = open_dataset(format, params, folder_)->fingerprint();
    std::vector<std::string> files = find_reader(format).files(params, folder_);
    ASSERT_EQ(files.size(), count);
    for (const std::string& file : files) {
      const std::string copy = path("stage/") + staged_name(file);
      fs::create_directories(fs::path(copy).parent_path());
      fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
      fs::resize_file(file, 0);
    }
    use_staged_files(path("stage"), files);
    const auto data = open_dataset(format, params, folder_);
    EXPECT_EQ(data->fingerprint(), before);
    EXPECT_THAT(data->where(0), HasSubstr(files.front().substr(0, files.front().rfind('/'))));
    forget_staged_files();
  }
  void copy_vector(const std::string& name) const { fs::copy_file(record_vector(name), path(name)); }
};

TEST_F(StagedSetsTest, NumbersInText) {
  write("a.csv", "1,2,0\n3,4,1\n");
  write_gzip("b.csv", "5,6,1\n");
  write("c.csv", "7,8,1\n");
  expect_copies_are_read("csv", {{"path", "[a.csv, b.csv]"}}, 2);
  copy_vector("lines.jsonl");
  write("x.jsonl", "{\"x\": [1, 2], \"y\": 1}\n{\"x\": [3, 4], \"y\": 0}\n");
  expect_copies_are_read("jsonl", {{"path", "x.jsonl"}, {"features", "x"}, {"labels", "y"}}, 1);
}

TEST_F(StagedSetsTest, Records) {
  write("r.bin", std::string{1, 2, 3, 0, 4, 5});
  expect_copies_are_read(
      "binary", {{"path", "r.bin"}, {"labels_offset", "0"}, {"features_offset", "1"}, {"shape", "[2]"}}, 1);
  fs::create_directories(path("set"));
  write("set/images", std::string{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4});
  write("set/labels", std::string{0, 0, 8, 1, 0, 0, 0, 2, 0, 1});
  expect_copies_are_read("idx", {{"folder", "set"}, {"images", "images"}, {"labels", "labels"}}, 2);
  copy_vector("plain.tfrecord");
  copy_vector("gzip.tfrecord");
  expect_copies_are_read("tfrecord",
                         {{"path", "plain.tfrecord"}, {"features", "floats"}, {"labels", "label"}}, 1);
  expect_copies_are_read("tfrecord", {{"path", "gzip.tfrecord"}, {"features", "floats"}}, 1);
  copy_vector("float32.npy");
  expect_copies_are_read("npy", {{"features", "float32.npy"}}, 1);
}

TEST_F(StagedSetsTest, Texts) {
  write("t.tsv", "train\tyes\tone two\ntrain\tno\ttwo three\n");
  expect_copies_are_read("text_tsv",
                         {{"path", "t.tsv"},
                          {"max_length", "3"},
                          {"min_count", "1"},
                          {"split_column", "0"},
                          {"label_column", "1"},
                          {"text_column", "2"}},
                         1);
  write("w.txt", "one two three one two three one two three\n");
  expect_copies_are_read("text_windows", {{"path", "w.txt"}, {"length", "2"}, {"min_count", "1"}}, 1);
  write("w.txt", "one two three one two three one two three\n");
  expect_copies_are_read("skip_gram",
                         {{"path", "w.txt"}, {"window", "1"}, {"min_count", "1"}, {"subsample", "0"}}, 1);
}

TEST_F(StagedSetsTest, Images) {
  for (const char* name : {"a/1.jpg", "b/2.jpg", "b/3.jpg"}) {
    fs::create_directories(fs::path(path("images/" + std::string(name))).parent_path());
    fs::copy_file(test_vectors("rgb.jpg"), path("images/" + std::string(name)));
  }
  expect_copies_are_read("images", {{"path", "images"}, {"rows", "[1, 3]"}}, 2);
}

TEST_F(StagedSetsTest, Hdf5) {
  add<float>("a.h5", "x", {2, 3}, counted(6));
  add<std::int32_t>("a.h5", "y", {2}, {0, 1});
  expect_copies_are_read("hdf5", {{"path", "a.h5"}, {"features", "x"}, {"labels", "y"}}, 1);
}

TEST_F(StagedSetsTest, Hdf5FilesThatTakeValuesFromOthersAreRefused) {
  add<float>("a.h5", "x", {2, 3}, counted(6));
  const auto refused = [&](const std::string& name, const std::string& dataset) {
    const Params params = params_for("hdf5", {{"path", name}, {"features", dataset}});
    EXPECT_GT(open_dataset("hdf5", params, folder_)->size(), 0);
    const Error error = error_of([&] { find_reader("hdf5").check_alone(params, path(name)); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_EQ(error.where(), path(name) + ", dataset " + dataset);
    return error.what_happened();
  };
  const Params whole = params_for("hdf5", {{"path", "a.h5"}, {"features", "x"}});
  find_reader("hdf5").check_alone(whole, path("a.h5"));
  add_link("link.h5", "linked", "a.h5", "x");
  add<float>("b.h5", "x", {4, 2}, counted(8));
  add_virtual("virtual.h5", "v", {"b.h5"}, "x", 4);
  write("raw", std::string(24, '\0'));
  add_external("external.h5", "e", {2, 3}, path("raw"), 0);
  EXPECT_THAT(refused("link.h5", "linked"), HasSubstr("external link"));
  EXPECT_THAT(refused("virtual.h5", "v"), HasSubstr("virtual"));
  EXPECT_THAT(refused("external.h5", "e"), HasSubstr("external storage"));
}

TEST_F(StagedSetsTest, EveryReaderNamesItsFiles) {
  for (const ReaderEntry& entry : reader_table()) {
    if (entry.name == "counting" || entry.name == "program") continue;  // of another test; without files
    EXPECT_NE(entry.files, nullptr) << entry.name;
  }
  EXPECT_TRUE(find_reader("synthetic").files(Params(), "").empty());
}

}  // namespace
}  // namespace lockstep::testing
