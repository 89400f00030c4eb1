// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several files of one data set: which ones, in which order, and that they are read as one.
#include "unit/data/hdf5_files.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DataFilesTest : public Hdf5Files {
 protected:
  std::unique_ptr<ReaderDataset> csv(const std::string& files, Options options = {}) const {
    options.emplace_back("path", files);
    return open_dataset("csv", params_for("csv", options), folder_);
  }
  std::unique_ptr<ReaderDataset> hdf5(const std::string& files, Options options = {}) const {
    options.emplace_back("path", files);
    options.emplace_back("features", "x");
    return open_dataset("hdf5", params_for("hdf5", options), folder_);
  }
  void expect_same(const Dataset& one, const Dataset& several) const {
    EXPECT_EQ(one.fingerprint(), several.fingerprint());
    EXPECT_EQ(features_of(one), features_of(several));
  }
};

TEST_F(DataFilesTest, ListsKeepTheirOrderPatternsAreSorted) {
  for (const char* name : {"b", "a10", "a9", "Z", "\xC3\xA4"})
    write(std::string(name) + ".csv",
          std::string("1,") + std::to_string(static_cast<unsigned char>(name[0])) + "\n");
  EXPECT_THAT(labels_of<std::int32_t>(*csv("[b.csv, a9.csv, a10.csv]")), ElementsAre('b', 'a', 'a'));
  EXPECT_EQ(csv("[b.csv, a9.csv, a10.csv]")->where(1), path("a9.csv") + ", line 1");
  const auto all = csv("*.csv");
  EXPECT_THAT(labels_of<std::int32_t>(*all), ElementsAre('Z', 'a', 'a', 'b', 0xC3))
      << "by bytes, in every locale";
  EXPECT_EQ(all->where(1), path("a10.csv") + ", line 1");
  EXPECT_EQ(csv("[b.csv, a?.csv]")->size(), 2);
  EXPECT_EQ(csv("a[0-9]*.csv")->size(), 2);
}

TEST_F(DataFilesTest, RegularExpressionsMatchNames) {
  std::filesystem::create_directory(path("sub"));
  for (const char* name : {"a10.csv", "a9.csv", "b.csv", "a1.csv.old", "sub/a7.csv"})
    write(name, std::string("1,") + std::to_string(static_cast<unsigned char>(name[1])) + "\n");
  const auto names = [&](const std::string& files) {
    const auto data = csv(files);
    std::vector<std::string> found;
    for (std::int64_t i = 0; i < data->size(); ++i)
      found.push_back(
          data->where(i).substr(folder_.size() + 1, data->where(i).find(',') - folder_.size() - 1));
    return found;
  };
  EXPECT_THAT(names("re:a[0-9]+\\.csv"), ElementsAre("a10.csv", "a9.csv"));
  EXPECT_THAT(names("[b.csv, re:sub/(a|b).\\.csv]"), ElementsAre("b.csv", "sub/a7.csv"));
  EXPECT_EQ(csv("re:" + path("a10?.csv"))->size(), 1) << "an absolute path";
  expect_data_error([&] { csv("re:a.csv"); }, folder_, "no file has a name that matches 're:a.csv'");
  expect_data_error([&] { csv("re:(a|sub)/.*"); }, path("(a|sub)"), "the folder cannot be searched");
  EXPECT_THAT(error_of([&] { csv("re:a("); }).what(), HasSubstr("'a(' is not a regular expression"));
  write("re:c.csv", "1,2\n");
  EXPECT_EQ(csv("re:c.csv")->size(), 1) << "a file's own name is no pattern";
}

TEST_F(DataFilesTest, NamesWithPatternCharacters) {
  std::filesystem::create_directory(path("[x]*"));
  write("[x]*/a[1].csv", "1,2\n");
  write("[x]*/a1.csv", "3,4\n");
  const auto open = [&](const std::string& files) {
    return open_dataset("csv", params_for("csv", {{"path", files}}), path("[x]*"));
  };
  EXPECT_THAT(labels_of<std::int32_t>(*open("a[1].csv")), ElementsAre(2))
      << "a file's own name is no pattern";
  EXPECT_THAT(labels_of<std::int32_t>(*open("a*.csv")), ElementsAre(4, 2)) << "nor is the folder's";
}

TEST_F(DataFilesTest, BadNames) {
  write("a.csv", "1,2\n");
  std::filesystem::create_symlink("a.csv", path("b.csv"));
  expect_data_error([&] { csv("none*.csv"); }, path("none*.csv"), "matches no file");
  expect_data_error([&] { csv("[a.csv, a.csv]"); }, path("a.csv"), "is named twice");
  expect_data_error([&] { csv("[a*.csv, b.csv]"); }, path("b.csv"), "is the same file as " + path("a.csv"));
  expect_data_error([&] { csv("[a.csv, c.csv]"); }, path("c.csv"), "cannot open");
  EXPECT_EQ(error_of([&] { csv("[]"); }).kind(), ErrorKind::config);
}

TEST_F(DataFilesTest, CsvFilesAreReadAsOne) {
  const std::string first = "1,2,0\n3,4,1\n", second = "5,6,2\n", third = "7,8,1.5\n9,10,0\n\n";
  write("one.csv", first + second + third);
  write("p1.csv", first);
  write_gzip("p2.csv.gz", second);
  write("p3.csv", third);
  const std::string parts = "[p1.csv, p2.csv.gz, p3.csv]";
  expect_same(*csv("one.csv"), *csv(parts));
  EXPECT_EQ(csv(parts)->label_kind(), LabelKind::rows) << "1.5 in the last file";
  for (const char* rows : {"[0, 2]", "[1, 3]", "[2, 4]", "[3, 5]", "[1, 5]"})
    expect_same(*csv("one.csv", {{"rows", rows}}), *csv(parts, {{"rows", rows}}));
  const auto part = csv(parts, {{"rows", "[1, 5]"}});
  EXPECT_EQ(part->where(0), path("p1.csv") + ", line 2");
  EXPECT_EQ(part->where(1), path("p2.csv.gz") + ", line 1");
  EXPECT_EQ(part->where(3), path("p3.csv") + ", line 2");
  expect_data_error(
      [&] {
        csv(parts, {{"rows", "[4, 6]"}});
      },
      path("p1.csv") + " to " + path("p3.csv") + " (3 files)", "there are 5 rows");
}

TEST_F(DataFilesTest, CsvFilesThatDiffer) {
  write("a.csv", "x,y,class\n1,2,0\n");
  write("b.csv", "x,z,class\n1,2,0\n");
  write("c.csv", "x,y,class\n1,2\n");
  write("d.csv", "x,y,class\n");
  write("e.csv", "x,class\n1,2\n");
  write("f.csv", "x,y,class\n1,2,0\n1,2,9\n");
  const Options header = {{"header", "true"}};
  expect_data_error([&] { csv("[a.csv, b.csv]", header); }, path("b.csv") + ", line 1",
                    "column 2 is named 'z', but 'y' in " + path("a.csv"));
  expect_data_error([&] { csv("[a.csv, c.csv]", header); }, path("c.csv") + ", line 2",
                    "has 2 columns, but the rows of " + path("a.csv") + " have 3");
  expect_data_error([&] { csv("[a.csv, d.csv]", header); }, path("d.csv"), "holds no data rows");
  expect_data_error([&] { csv("[a.csv, e.csv]", header); }, path("e.csv") + ", line 1", "names 2 columns");
  expect_data_error([&] { csv("[a.csv, f.csv]", header)->check_labels(classes(9)); },
                    path("f.csv") + ", line 3", "label 9 is not");
}

TEST_F(DataFilesTest, Hdf5FilesAreReadAsOne) {
  std::vector<float> values(20);
  std::iota(values.begin(), values.end(), 0.F);
  const std::vector<std::int32_t> labels = {0, 1, 2, 3, 4};
  const auto write_part = [&](const std::string& file, std::size_t first, std::size_t last) {
    add<float>(file, "x", {last - first, 2, 2},
               std::vector<float>(values.begin() + 4 * first, values.begin() + 4 * last), {1, 2, 2}, true);
    add<std::int32_t>(file, "label", {last - first}, {labels.begin() + first, labels.begin() + last});
  };
  write_part("one.h5", 0, 5);
  write_part("p1.h5", 0, 2);
  write_part("p2.h5", 2, 3);
  write_part("p3.h5", 3, 5);
  for (const char* layout : {"channels_first", "channels_last"})
    for (const char* rows : {"null", "[0, 2]", "[1, 3]", "[2, 3]", "[3, 5]", "[1, 5]"}) {
      const Options options = {{"labels", "label"}, {"rows", rows}, {"layout", layout}};
      expect_same(*hdf5("one.h5", options), *hdf5("p*.h5", options));
    }
  const auto part = hdf5("p*.h5", {{"rows", "[1, 4]"}});
  EXPECT_EQ(part->where(0), path("p1.h5") + ", record 1");
  EXPECT_EQ(part->where(1), path("p2.h5") + ", record 0");
  EXPECT_EQ(part->where(2), path("p3.h5") + ", record 0");
  expect_data_error(
      [&] {
        hdf5("p*.h5", {{"rows", "[1, 6]"}});
      },
      path("p1.h5") + " to " + path("p3.h5") + " (3 files), dataset x", "there are 5 rows");
}

TEST_F(DataFilesTest, Hdf5FilesThatDiffer) {
  add<float>("a.h5", "x", {2, 2}, {1, 2, 3, 4});
  add<std::int32_t>("a.h5", "label", {2}, {0, 1});
  add<float>("shape.h5", "x", {2, 1, 2}, {1, 2, 3, 4});
  add<double>("type.h5", "x", {2, 2}, {1, 2, 3, 4});
  add<float>("labels.h5", "x", {2, 2}, {1, 2, 3, 4});
  add<float>("labels.h5", "label", {2}, {0, 1});
  add<float>("columns.h5", "x", {2, 2}, {1, 2, 3, 4});
  add<std::int32_t>("columns.h5", "label", {2, 2}, {0, 1, 0, 1});
  add<float>("hole.h5", "x", {2, 2}, {}, {1, 2});
  const auto refused = [&](const std::string& file, const std::string& dataset, const std::string& what,
                           const Options& options = {}) {
    expect_data_error([&] { hdf5("[a.h5, " + file + "]", options); }, path(file) + ", dataset " + dataset,
                      what);
  };
  refused("shape.h5", "x", "its samples have the shape 1x2, but those of " + path("a.h5") + " have 2");
  refused("type.h5", "x", "its features are float64, but those of " + path("a.h5") + " are float32");
  refused("labels.h5", "label", "its labels are floating-point numbers, but", {{"labels", "label"}});
  refused("columns.h5", "label", "has 2 labels per sample", {{"labels", "label"}});
  refused("hole.h5", "x, record 0", "was never written");
  refused("hole.h5", "label", "no such dataset", {{"labels", "label"}});
}

}  // namespace
}  // namespace lockstep::testing
