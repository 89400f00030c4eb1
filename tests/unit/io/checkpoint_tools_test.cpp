// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Name rules; comparing, averaging and exporting checkpoints.
#include "io/checkpoint_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checkpoint_testing.h"
#include "io/checkpoint_store.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::CheckpointFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::test_header;

TEST(CheckpointNames, PatternsMatchWholeNames) {
  EXPECT_TRUE(NamePatterns().matches("anything"));
  const NamePatterns patterns({"conv1/*", "bn/gamma"});
  EXPECT_TRUE(patterns.matches("conv1/kernel"));
  EXPECT_TRUE(patterns.matches("bn/gamma"));
  EXPECT_FALSE(patterns.matches("bn/gamma2"));
  EXPECT_FALSE(patterns.matches("a/conv1/kernel"));
  EXPECT_THAT(patterns.unused({"conv1/bias"}), ElementsAre("bn/gamma"));
  EXPECT_THROW(NamePatterns({"re:("}), Error);
}

TEST(CheckpointNames, RulesRename) {
  const NameRules rules({{"head/", "top/"}, {"re:block([0-9])/(.*)", "stage$1/$2"}, {"head/bias", "b"}});
  EXPECT_EQ(rules.renamed("head/kernel"), "top/kernel");
  EXPECT_EQ(rules.renamed("head/bias"), "b") << "a rule for the name itself has priority";
  EXPECT_EQ(rules.renamed("block2/conv/kernel"), "stage2/conv/kernel");
  EXPECT_EQ(rules.renamed("other"), "other");
  EXPECT_EQ(rules.renamed("ahead/kernel"), "ahead/kernel");
  EXPECT_THAT(rules.unused({"head/bias", "block1/x"}), ElementsAre("head/"));
  EXPECT_EQ(NameRules({NameRules::Rule{"/", "backbone/"}}).renamed("a/b"), "backbone/a/b");
  EXPECT_EQ(NameRules({NameRules::Rule{"backbone/", "/"}}).renamed("backbone/a/b"), "a/b");
  EXPECT_EQ(NameRules({NameRules::Rule{"a.b", "c"}}).renamed("a.b"), "c");
  for (const NameRules::Rule& wrong :
       {NameRules::Rule{"a/", "b"}, {"a", "b/"}, {"", "b"}, {"a", ""}, {"re:(", "b"}})
    EXPECT_THROW(NameRules({wrong}), Error) << wrong.first;
}

class CheckpointTools : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::vector<float> a, std::vector<double> b = {1, 2},
                    std::int32_t counter = 3, int step = 7) {
    const std::vector<CheckpointTensor> tensors = {
        {"variables/a", Tensor(a.data(), DType::f32, {static_cast<std::int64_t>(a.size())})},
        {"variables/n/b", Tensor(b.data(), DType::f64, {2})},
        {"variables/n/counter", Tensor(&counter, DType::i32, {})},
        {"slots/m/a", Tensor(a.data(), DType::f32, {static_cast<std::int64_t>(a.size())})}};
    write_checkpoint(folder_ / name, test_header(step), tensors);
    return folder_ / name;
  }
  std::vector<float> floats(const std::string& path, const std::string& tensor, std::size_t count) {
    std::vector<float> values(count);
    CheckpointFile(path).read_into(tensor,
                                   Tensor(values.data(), DType::f32, {static_cast<std::int64_t>(count)}));
    return values;
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::vector<TensorDifference> compare(const std::string& a, const std::string& b) {
    return compare_checkpoints(CheckpointFile(a), CheckpointFile(b));
  }

  CheckpointFolder folder_;
};

TEST_F(CheckpointTools, CompareMeasuresDifferences) {
  using Kind = TensorDifference::Kind;
  const std::string one = write("one", {1, 2, 4}), two = write("two", {1, 2.5, 3}, {1, 2}, 4);
  for (const TensorDifference& difference : compare(one, one)) EXPECT_EQ(difference.kind, Kind::equal);
  const std::vector<TensorDifference> all = compare(one, two);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].path, "slots/m/a");
  EXPECT_EQ(all[1].path, "variables/a");
  EXPECT_EQ(all[1].kind, Kind::values);
  EXPECT_EQ(all[1].num_different, 2);
  EXPECT_EQ(all[1].max_absolute, 1);
  EXPECT_EQ(all[1].max_relative, 0.25);
  EXPECT_EQ(all[2].kind, Kind::equal);
  EXPECT_EQ(all[3].max_absolute, 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(compare(one, write("nan", {nan, 9, 9}))[1].max_absolute));
  EXPECT_EQ(compare(folder_ / "nan", folder_ / "nan")[1].kind, Kind::equal) << "the same bits";
  const auto zero = compare(write("plus", {0, 0, 0}), write("minus", {-0.0F, 0, 0}));
  EXPECT_EQ(zero[1].num_different, 1);
  EXPECT_EQ(zero[1].max_absolute, 0);
}

TEST_F(CheckpointTools, CompareReportsShapesAndNames) {
  using Kind = TensorDifference::Kind;
  const std::string one = write("one", {1, 2, 4}), two = write("two", {1, 2});
  EXPECT_EQ(compare(one, two)[1].kind, Kind::shape);
  EXPECT_THAT(compare(one, two)[1].detail, AllOf(HasSubstr("3"), HasSubstr("2")));
  export_weights(CheckpointFile(one), NamePatterns({"a"}), NameRules({NameRules::Rule{"a", "z"}}),
                 folder_ / "w");
  const auto all = compare(one, folder_ / "w");
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[1].kind, Kind::only_first);
  EXPECT_EQ(all[4].path, "variables/z");
  EXPECT_EQ(all[4].kind, Kind::only_second);
}

TEST_F(CheckpointTools, ExportWritesOnlyVariables) {
  const CheckpointFile one(write("one", {1, 2, 4}));
  export_weights(one, NamePatterns(), NameRules({NameRules::Rule{"n/", "m/"}}), folder_ / "w");
  const CheckpointFile weights(folder_ / "w");
  weights.verify();
  EXPECT_TRUE(weights.header().weights_only);
  EXPECT_FALSE(one.header().weights_only);
  EXPECT_EQ(weights.header().global_step, 7);
  std::vector<std::string> paths;
  for (const CheckpointEntry& entry : weights.entries()) paths.push_back(entry.path);
  EXPECT_THAT(paths, ElementsAre("variables/a", "variables/m/b", "variables/m/counter"));
  EXPECT_THAT(floats(folder_ / "w", "variables/a", 3), ElementsAre(1, 2, 4));

  EXPECT_THAT(message_of([&] { export_weights(one, NamePatterns({"b"}), NameRules(), folder_ / "x"); }),
              AllOf(HasSubstr("--variables 'b' matches no variable"), HasSubstr("n/b")));
  EXPECT_THAT(message_of([&] {
                export_weights(one, NamePatterns(), NameRules({NameRules::Rule{"c", "d"}}), folder_ / "x");
              }),
              HasSubstr("--rename 'c' matches no variable"));
  EXPECT_THAT(message_of([&] {
                export_weights(one, NamePatterns(), NameRules({NameRules::Rule{"a", "n/b"}}), folder_ / "x");
              }),
              HasSubstr("two variables the name 'n/b'"));
  EXPECT_THAT(folder_.names(), ::testing::UnorderedElementsAre("one", "w"));
}

std::vector<CheckpointFile> opened(const std::vector<std::string>& paths) {
  std::vector<CheckpointFile> files;
  for (const std::string& path : paths) files.emplace_back(path);
  return files;
}

TEST_F(CheckpointTools, AverageAddsInDoubleInOrder) {
  // In float32 16777216 + 1 + 1 would lose both ones.
  const std::vector<std::string> files = {write("one", {16777216, 1}, {1, 2}), write("two", {1, 2}, {2, 4}),
                                          write("three", {1, 6}, {3, 9}, 3, 9)};
  average_weights(opened(files), folder_ / "mean");
  const CheckpointFile mean(folder_ / "mean");
  EXPECT_TRUE(mean.header().weights_only);
  EXPECT_EQ(mean.header().global_step, 9);
  EXPECT_EQ(mean.entries().size(), 3U) << "no slots";
  EXPECT_THAT(floats(folder_ / "mean", "variables/a", 2), ElementsAre(static_cast<float>(16777218.0 / 3), 3));
  double b[2];
  mean.read_into("variables/n/b", Tensor(b, DType::f64, {2}));
  EXPECT_THAT(b, ElementsAre(2, 5));
}

TEST_F(CheckpointTools, AverageRejectsDifferentModels) {
  const std::string one = write("one", {1, 2});
  const auto message = [&](const std::string& other) {
    return message_of([&] { average_weights(opened({one, other}), folder_ / "x"); });
  };
  EXPECT_THAT(message(write("two", {1, 2, 3})), AllOf(HasSubstr("two"), HasSubstr("variables/a is float32")));
  EXPECT_THAT(message(write("three", {1, 2}, {1, 2}, 4)), HasSubstr("counter is int32, which has no mean"));
  export_weights(CheckpointFile(one), NamePatterns({"n/*"}), NameRules(), folder_ / "part");
  EXPECT_THAT(message(folder_ / "part"), HasSubstr("part: has no variable a"));
  export_weights(CheckpointFile(one), NamePatterns(), NameRules({NameRules::Rule{"a", "c"}}),
                 folder_ / "other");
  EXPECT_THAT(message(folder_ / "other"), HasSubstr("has no variable c"));
  EXPECT_THAT(folder_.names(), ::testing::Not(::testing::Contains("x")));
}

TEST_F(CheckpointTools, DamageIsAnError) {
  const std::string one = write("one", {1, 2, 4});
  const std::string values(reinterpret_cast<const char*>(std::vector<float>{1, 2, 4}.data()), 12);
  std::FILE* file = std::fopen(one.c_str(), "r+b");
  std::string bytes(100'000, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  const std::size_t at = bytes.find(values);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  testing::write_file(one, bytes);
  const std::string two = write("two", {1, 2, 4});
  EXPECT_THAT(message_of([&] { compare(one, two); }), HasSubstr("checksum"));
}

}  // namespace
}  // namespace lockstep
