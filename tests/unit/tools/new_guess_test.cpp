// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules by which `lockstep new` guesses: names, first lines, arrays, labels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tools/new/array_guess.h"
#include "tools/new/label_form.h"
#include "tools/new/table_header.h"
#include "tools/new/usual_names.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using Lines = std::vector<std::vector<std::string>>;

HeaderGuess guessed(const Lines& lines) {
  return guess_header(lines, [](std::string_view text) { return text == "NA"; });
}

/// `first`, then 40 lines whose columns are fractions, whole numbers and texts: as `kinds` says, a letter
/// each.
Lines table(std::vector<std::string> first, const std::string& kinds) {
  Lines lines{std::move(first)};
  for (int i = 0; i < 40; ++i) {
    lines.emplace_back();
    for (const char kind : kinds)
      lines.back().push_back(kind == 'f'   ? std::to_string(i % 9) + ".5"
                             : kind == 'w' ? std::to_string(i * 7 % 11)
                             : kind == 'k' ? std::string(i % 2 == 0 ? "red" : "blue")
                                           : "text " + std::to_string(i));
  }
  return lines;
}

void expect_header(const Lines& lines, bool header, bool certain) {
  const HeaderGuess guess = guessed(lines);
  EXPECT_EQ(guess.header, header) << guess.doubt;
  EXPECT_EQ(guess.doubt.empty(), certain) << guess.doubt;
}

TEST(TableHeader, ATextAboveNumbersIsAName) {
  expect_header(table({"a", "b", "kind"}, "fwk"), true, true);
  expect_header(table({"400.5", "401", "401.5", "label"}, "fffw"), true, true);
  expect_header(table({"400.5", "17", "label"}, "ffw"), true, false);
}

TEST(TableHeader, ATextThatStandsBelowIsASample) {
  expect_header(table({"0.5", "3", "red"}, "fwk"), false, true);
  expect_header(table({"red", "blue"}, "kk"), false, true);
  expect_header(table({"red", "other"}, "kk"), false, false);
}

TEST(TableHeader, NumbersAreNamesNextToATextThatNeverStandsBelow) {
  expect_header(table({"2019", "2020", "kind"}, "ffk"), true, true);
  expect_header(table({"0", "1", "kind"}, "wwk"), true, true);
  expect_header(table({"17", "23", "kind"}, "wwk"), true, false);
  expect_header(table({"5.1", "3.5", "green"}, "ffk"), false, false);
  expect_header(table({"4", "4", "green"}, "wwk"), false, false);
}

TEST(TableHeader, NumbersAloneAreNamesIfTheyCountOrAreYears) {
  expect_header(table({"0", "1", "2"}, "ffw"), true, true);
  expect_header(table({"0", "1", "2", "3"}, "wwww"), true, true);
  expect_header(table({"0", "1", "2"}, "www"), true, false);
  expect_header(table({"", "0", "1", "2"}, "wffw"), true, true);
  expect_header(table({"2019", "2020"}, "ff"), true, true);
  expect_header(table({"2019", "2020"}, "kf"), true, true);
  expect_header(table({"3", "9", "1"}, "www"), false, true);
  // Windows of a series: each line continues the one before.
  expect_header({{"0", "1", "2", "3"}, {"1", "2", "3", "4"}, {"2", "3", "4", "5"}}, false, true);
}

TEST(TableHeader, MissingValuesAndFreeTextsTellNothing) {
  expect_header(table({"NA", "3", "red"}, "fwk"), false, true);
  expect_header(table({"text", "label"}, "tk"), true, true);
  expect_header(table({"a sentence", "another"}, "tt"), false, false);
}

TEST(UsualNames, TellLabelsRowsAxesAndSets) {
  EXPECT_LT(*label_rank("Label", false), *label_rank("y", false));
  EXPECT_FALSE(label_rank("train_labels", false));
  EXPECT_TRUE(label_rank("train_labels", true));
  EXPECT_TRUE(label_rank("image/class/label", true));
  EXPECT_FALSE(label_rank("energy", true));
  for (const char* const name : {"id", "PersonId", "sample_id", "Index", "unnamed: 0", "filename", "row_nr"})
    EXPECT_TRUE(names_rows(name)) << name;
  for (const char* const name : {"y", "label", "width", "paid", "no_show", "identity"})
    EXPECT_FALSE(names_rows(name)) << name;
  EXPECT_TRUE(names_axis("start_time"));
  EXPECT_EQ(set_of("x_train")->rest, "x");
  EXPECT_EQ(set_of("train_set_x")->rest, "x");
  EXPECT_EQ(set_of("test/image")->set, SetKind::test);
  EXPECT_EQ(set_of("xtest")->rest, "x");
  EXPECT_EQ(set_of("Validation")->set, SetKind::validation);
  EXPECT_FALSE(set_of("contest"));
  EXPECT_FALSE(set_of("latest_values"));
}

NamedArray array(const std::string& name, std::vector<std::int64_t> extents, NamedArray::Kind kind) {
  return {.name = name, .extents = std::move(extents), .kind = kind};
}

TEST(ArrayGuess, NamesDecideBeforeTypes) {
  using Kind = NamedArray::Kind;
  const std::vector<NamedArray> arrays{array("id", {50}, Kind::whole), array("age", {50}, Kind::real),
                                       array("target", {50}, Kind::real), array("x", {50, 4}, Kind::real)};
  const ChosenArrays chosen = choose_arrays(arrays, {}, "dataset");
  EXPECT_EQ(chosen.features, "x");
  EXPECT_EQ(chosen.labels, "target");
  EXPECT_TRUE(chosen.assumed.empty());
}

TEST(ArrayGuess, WithoutAUsualNameItIsSaid) {
  using Kind = NamedArray::Kind;
  const std::vector<NamedArray> arrays{array("energy", {50}, Kind::real), array("kind", {50}, Kind::text),
                                       array("x", {50, 4}, Kind::real)};
  const ChosenArrays chosen = choose_arrays(arrays, {}, "dataset");
  EXPECT_EQ(chosen.labels, "kind");
  EXPECT_THAT(chosen.assumed, testing::ElementsAre(HasSubstr("'kind', and not energy")));
}

TEST(ArrayGuess, SetsThatAreApartAreUsedWhateverTheirSizes) {
  using Kind = NamedArray::Kind;
  const std::vector<NamedArray> arrays{
      array("x_test", {500, 4}, Kind::real), array("x_train", {50, 4}, Kind::real),
      array("x_val", {70, 4}, Kind::real),   array("y_test", {500}, Kind::whole),
      array("y_train", {50}, Kind::whole),   array("y_val", {70}, Kind::whole)};
  const ChosenArrays chosen = choose_arrays(arrays, {}, "array");
  EXPECT_EQ(chosen.features + chosen.labels + chosen.eval_features + chosen.eval_labels,
            "x_trainy_trainx_valy_val");
  EXPECT_THAT(chosen.notes, testing::ElementsAre(HasSubstr("x_test is not used")));
}

TEST(ArrayGuess, ErrorsNameWhatIsNoLabelAndWhy) {
  using Kind = NamedArray::Kind;
  std::vector<NamedArray> arrays{array("id", {50}, Kind::whole), array("x", {50, 4}, Kind::real),
                                 array("count", {50}, Kind::whole)};
  arrays[2].counts_rows = [] { return true; };
  try {
    choose_arrays(arrays, {}, "dataset");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no labels are: id (names rows), count (counts the rows)"));
  }
}

LabelForm form(const std::vector<float>& values, std::int64_t columns, bool integers = true) {
  return label_form(values, columns, {.integers = integers});
}

std::vector<float> repeated(const std::vector<float>& values) {
  std::vector<float> all;
  for (int i = 0; i < 30; ++i) all.insert(all.end(), values.begin(), values.end());
  return all;
}

TEST(LabelForm, IsThatOfTheValues) {
  EXPECT_EQ(form(repeated({0, 1, 2}), 1).classes, 3);
  EXPECT_EQ(form(repeated({1, 0, 0, 0, 1, 0}), 3).classes, 3);
  EXPECT_EQ(form(repeated({1, 0, 0, 0, 1, 0}), 3).task, LabelTask::classes);
  EXPECT_EQ(form(repeated({1, 1, 0, 0, 0, 0}), 3).task, LabelTask::many_labels);
  EXPECT_EQ(form(repeated({0.25F, 0.75F}), 2, false).task, LabelTask::classes);
  EXPECT_EQ(form(repeated({0.5F, 1.5F}), 1, false).task, LabelTask::numbers);
  EXPECT_EQ(form(repeated({2, 3, 4}), 3).task, LabelTask::numbers);
}

TEST(LabelForm, SaysWhatMayBeWrong) {
  EXPECT_TRUE(form(repeated({0, 1, 2}), 1).doubt.empty());
  EXPECT_THAT(form(repeated({0, 1, 2}), 1, false).doubt, HasSubstr("stored as fractions"));
  const LabelForm prices = form(repeated({12000, 35000, 47000}), 1);
  EXPECT_EQ(prices.task, LabelTask::numbers);
  EXPECT_THAT(prices.doubt, HasSubstr("--task classes"));
  EXPECT_THAT(form(repeated({-1, 1}), 1).doubt, HasSubstr("store 0 and 1"));
  EXPECT_THAT(form(repeated({-1, 0, 1, 2}), 1).doubt, HasSubstr("classes count from 0"));
  EXPECT_THAT(form(repeated({4, 5, 6}), 1).doubt, HasSubstr("from 4 to 6 are classes"));
  std::vector<float> counts;
  for (int i = 0; i < 3000; ++i) counts.push_back(static_cast<float>(i * 7 % 101));
  EXPECT_THAT(form(counts, 1).doubt, HasSubstr("from 0 to 100 are classes"));
}

TEST(LabelForm, OneValueIsOneClassWhateverItIs) { EXPECT_EQ(form(repeated({5}), 1).classes, 1); }

TEST(LabelForm, FollowsWhatSomebodySays) {
  EXPECT_EQ(label_form(repeated({0, 1}), 1, {.integers = true, .as_numbers = true}).task, LabelTask::numbers);
  EXPECT_EQ(label_form(repeated({7, 9}), 1, {.integers = true, .as_classes = true}).classes, 10);
  EXPECT_THROW(label_form(repeated({0.5F, 1.5F}), 1, {.as_classes = true}), Error);
}

TEST(PartOfSamples, ByTheWordsOfAName) {
  const auto expect = [](const char* name, bool are_labels, const char* rest) {
    const auto part = part_of(name);
    ASSERT_TRUE(part.has_value()) << name;
    EXPECT_EQ(part->are_labels, are_labels) << name;
    EXPECT_EQ(part->rest, rest) << name;
  };
  expect("X_train", false, "train");
  expect("y_train", true, "train");
  expect("xtest", false, "test");
  expect("train-labels", true, "train");
  expect("features", false, "");
  for (const char* const name : {"subject_train", "train", "activity", ""})
    EXPECT_FALSE(part_of(name)) << name;
}

}  // namespace
}  // namespace lockstep
