// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/multi_label_binarizer.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep {
namespace {

using Views = std::vector<std::string_view>;

std::vector<float> row_of(const MultiLabelBinarizer& binarizer, const Views& labels) {
  std::vector<float> row(static_cast<std::size_t>(binarizer.num_classes()), -7.0F);
  binarizer.transform(labels, "news.tsv", 3, row.data());
  return row;
}

/// The error that `work` throws.
template <typename Work>
Error error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::bug, "nothing was thrown");
}

TEST(MultiLabelBinarizer, KeepsTheOrderOfAGivenList) {
  const MultiLabelBinarizer binarizer({"wheat", "acq", "earn"});
  EXPECT_EQ(row_of(binarizer, {"earn", "wheat"}), (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(row_of(binarizer, {}), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(row_of(binarizer, {"acq", "acq"}), (std::vector<float>{0, 1, 0}));
}

TEST(MultiLabelBinarizer, ReportsUnknownLabelsWithSuggestion) {
  const MultiLabelBinarizer binarizer({"wheat", "acquisition", "earn"});
  const Error near = error_of([&] { row_of(binarizer, {"earn", "aquisition"}); });
  EXPECT_EQ(near.kind(), ErrorKind::data);
  EXPECT_EQ(near.where(), "news.tsv, line 3");
  EXPECT_EQ(near.what_happened(), "label 'aquisition' is not one of the 3 classes");
  EXPECT_NE(near.advice().find("'acquisition'"), std::string::npos) << near.advice();
  const Error far = error_of([&] { row_of(binarizer, {"gold"}); });
  EXPECT_EQ(far.kind(), ErrorKind::data);
  EXPECT_EQ(far.advice().find("mean"), std::string::npos) << far.advice();
}

TEST(MultiLabelBinarizer, RejectsInvalidLists) {
  EXPECT_EQ(error_of([] { MultiLabelBinarizer({}); }).kind(), ErrorKind::config);
  EXPECT_EQ(error_of([] { MultiLabelBinarizer({"a", ""}); }).kind(), ErrorKind::config);
  const Error twice = error_of([] { MultiLabelBinarizer({"a", "b", "a"}); });
  EXPECT_EQ(twice.what_happened(), "class 'a' occurs twice in the list of classes");
}

TEST(SplitLabels, RemovesBlanksAndEmptyNames) {
  EXPECT_EQ(split_labels("grain, wheat", ','), (Views{"grain", "wheat"}));
  EXPECT_EQ(split_labels(" earn \r", ','), (Views{"earn"}));
  EXPECT_EQ(split_labels("a,,b,", ','), (Views{"a", "b"}));
  EXPECT_EQ(split_labels("two words;b", ';'), (Views{"two words", "b"}));
  EXPECT_TRUE(split_labels("", ',').empty());
  EXPECT_TRUE(split_labels(" \t", ',').empty());
}

}  // namespace
}  // namespace lockstep
