// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_description.h"

#include "core/device.h"
#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "data/text_info.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

DatasetParts table_with_words() {
  DatasetParts parts;
  parts.source = "x";
  parts.size = 2;
  parts.feature_shape = {3};
  parts.feature_dtype = DType::i32;
  parts.features = Buffer(cpu_device(), 6 * sizeof(std::int32_t));
  std::fill_n(parts.features.as<std::int32_t>().begin(), 6, 1);
  parts.num_label_columns = 1;
  parts.label_indices = {0, 1};
  parts.class_names = {"a\xffz", "ü"};  // a text that is not UTF-8, and one that is
  TableInfo table{.num_columns = 4, .features = {{1, "town", {"Bonn", "Ulm"}}, {2, "age", {}}}};
  table.labels = {{3, "kind", {"a\xffz", "ü"}}};
  parts.table = std::make_shared<const TableInfo>(table);
  parts.text = std::make_shared<const TextInfo>(
      TextInfo{.tokenizer = {.unit = TokenUnit::characters, .lower_case = true},
               .vocabulary = Vocabulary({{"x", 5}, {"y", 2}}, {.padding = true}),
               .next_token_labels = true});
  return parts;
}

TEST(SampleDescription, HasAllThatASampleIs) {
  const ReaderDataset data(table_with_words());
  const SampleDescription found = sample_description(sample_description_text(data), "a test");
  ASSERT_EQ(found.parts.size(), 1);
  const SampleDescription::Part& part = found.parts.front();
  EXPECT_EQ(found.samples, 2);
  EXPECT_EQ(part.shape, Shape{3});
  EXPECT_EQ(part.type, DType::i32);
  EXPECT_EQ(part.labels, LabelKind::indices);
  EXPECT_EQ(part.label_columns, 1);
  EXPECT_THAT(part.class_names, ElementsAre("a\xffz", "ü"));
  ASSERT_NE(part.table, nullptr);
  EXPECT_EQ(part.table->features, data.table()->features);
  EXPECT_EQ(part.table->labels, data.table()->labels);
  ASSERT_NE(part.text, nullptr);
  EXPECT_EQ(part.text->vocabulary.file_text(), data.text()->vocabulary.file_text());
  EXPECT_EQ(part.text->vocabulary.id("y"), data.text()->vocabulary.id("y"));
  EXPECT_EQ(part.text->vocabulary.unknown_id(), 1);
  EXPECT_TRUE(part.text->tokenizer.lower_case && part.text->next_token_labels && part.reads_text);
}

TEST(SampleDescription, ASampleOfItHasTheSameForm) {
  const ReaderDataset data(table_with_words());
  const SampleDescription found = sample_description(sample_description_text(data), "a test");
  const ReaderDataset empty(found.empty_sample(0));
  EXPECT_EQ(empty.size(), 1);
  EXPECT_EQ(empty.feature_shape(), data.feature_shape());
  EXPECT_EQ(empty.label_kind(), data.label_kind());
  EXPECT_EQ(empty.class_names(), data.class_names());
  // Described again, it is the same.
  const std::string again = sample_description_text(empty);
  EXPECT_EQ(again.substr(again.find("parts")), sample_description_text(data).substr(again.find("parts")));
}

TEST(SampleDescription, AnotherTextIsRefused) {
  EXPECT_THROW(sample_description("{}", "a test"), Error);
  EXPECT_THROW(sample_description("nonsense", "a test"), Error);
  EXPECT_THROW(sample_description(R"({"format": "lockstep samples", "version": 2, "parts": []})", "a test"),
               Error);
}

}  // namespace
}  // namespace lockstep::testing
