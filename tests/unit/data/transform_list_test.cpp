// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists of transforms: what is refused, transforms of numbers and texts, and those of a user.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/hash.h"
#include "data/transform.h"
#include "support/error_support.h"
#include "support/test_folders.h"
#include "unit/data/prepared_transforms.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

std::string refused(const std::string& items, const Shape& shape) {
  return message_of([&] { Prepared(items, shape); });
}

TEST(Transform, WhatDoesNotFitIsRefusedWithItsPlace) {
  EXPECT_THAT(refused("random_flp", {4, 4, 1}), HasSubstr("random_flip"));
  EXPECT_THAT(refused("crop: {size: 5}", {4, 4, 1}), HasSubstr("does not fit into samples of 4x4x1"));
  EXPECT_THAT(refused("crop: {size: 3, offset: 2}", {4, 4, 1}), HasSubstr("at offset 2"));
  EXPECT_THAT(refused("crop: {size: [1, 2, 3]}", {4, 4, 1}), HasSubstr("2 axes beside the channels"));
  EXPECT_THAT(refused("random_crop", {4, 4, 1}), HasSubstr("nothing to choose"));
  EXPECT_THAT(refused("random_flip", {64}), HasSubstr("takes images or volumes"));
  EXPECT_THAT(refused("random_flip: {axes: [depth]}", {4, 4, 1}), HasSubstr("Only volumes"));
  EXPECT_THAT(refused("random_flip: {axes: [left]}", {4, 4, 1}), HasSubstr("unknown axis 'left'"));
  EXPECT_THAT(refused("random_symmetry", {4, 5, 1}), HasSubstr("squares and cubes"));
  EXPECT_THAT(refused("pad: {amount: 4, padding_mode: reflect}", {4, 4, 1}), HasSubstr("cannot be mirrored"));
  EXPECT_THAT(refused("normalize: {mean: [1, 2]}", {4, 4, 3}), HasSubstr("mean has 2 values"));
  EXPECT_THAT(refused("resize: {size: 8}, resize: {size: 4}", {4, 4, 4, 1}), HasSubstr("transform resize"));
  EXPECT_THAT(refused("random_affine: {scale: [2, 1]}", {4, 4, 1}), HasSubstr("the smaller first"));
  EXPECT_THAT(refused("grayscale", {4, 4, 1}), HasSubstr("takes 3 channels"));
}

TEST(Transform, OneHotAndLookup) {
  Prepared one_hot("one_hot: {classes: 3}", {2});
  EXPECT_EQ(one_hot.shape(), Shape({2, 3}));
  EXPECT_EQ(one_hot({2, 0}, nullptr), (Values{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(Prepared("one_hot: {classes: 3}", {1}).shape(), Shape({3}));
  EXPECT_EQ(Prepared("one_hot: {classes: 2, outside: zeros}", {4})({-1, 1, 0.5, 2}, nullptr),
            (Values{0, 0, 0, 1, 0, 0, 0, 0}));
  for (const float bad : {-1.0F, 3.0F, 0.5F, NAN})
    EXPECT_THAT(message_of(
                    [&] {
                      one_hot({0, bad}, nullptr);
                    },
                    ErrorKind::data),
                HasSubstr("no whole number from 0 to 2"));
  EXPECT_EQ(Prepared("lookup: {keys: [7, -2, 0.5]}", {4})({0.5, 7, -2, 7}, nullptr), (Values{2, 0, 1, 0}));
  EXPECT_EQ(Prepared("lookup: {keys: [7, 9], unknown: 5}", {2})({8, 9}, nullptr), (Values{5, 1}));
  Prepared lookup("lookup: {keys: [7, 9]}", {2});
  EXPECT_THAT(message_of(
                  [&] {
                    lookup({9, 8}, nullptr);
                  },
                  ErrorKind::data),
              HasSubstr("8 is none of the 2 keys"));
  EXPECT_THAT(refused("lookup: {keys: [7, 9, 7]}", {2}), HasSubstr("has 7 twice"));
  EXPECT_EQ(Prepared("lookup: {keys: [7, 9]}, one_hot: {classes: 2}", {2})({9, 7}, nullptr),
            (Values{0, 1, 1, 0}));
}

TEST(Transform, TokenizeMakesIdsOfBytes) {
  const std::string words = ::testing::TempDir() + "lockstep-transform-words.txt";
  std::ofstream(words) << "see\nyou\n\u00fcber\n";
  const auto rows = [&](const std::string& text, const std::string& more, std::int64_t room = 12) {
    Values bytes(static_cast<std::size_t>(room));
    std::ranges::transform(text, bytes.begin(), [](char c) { return static_cast<unsigned char>(c); });
    Prepared transform("tokenize: {vocabulary: " + words + ", max_length: 3" + more + "}", {room});
    EXPECT_EQ(transform.shape(), Shape({3}));
    return transform(bytes, nullptr);
  };
  EXPECT_EQ(rows("you see", ""), (Values{3, 2, 0}));
  EXPECT_EQ(rows("You, see!", ""), (Values{1, 2, 0}));
  EXPECT_EQ(rows("You, see!", ", lower_case: true"), (Values{3, 2, 0}));
  EXPECT_EQ(rows("", ""), (Values{1, 0, 0}));
  EXPECT_EQ(rows("see see you x", "", 20), (Values{2, 2, 3}));
  EXPECT_EQ(rows("see see you x", ", truncate: front", 20), (Values{2, 3, 1}));
  EXPECT_EQ(rows("\u00fcber you", ""), (Values{4, 3, 0}));
  // A text that was cut inside a character.
  EXPECT_EQ(rows(std::string("you see \u00fc").substr(0, 9), "", 9), (Values{3, 2, 0}));
  EXPECT_EQ(rows(std::string("\u00fc you").substr(1), "", 5), (Values{3, 0, 0}));
  EXPECT_THAT(message_of([&] { rows("you \xff see", ""); }, ErrorKind::data),
              HasSubstr("byte 5 is not UTF-8"));
  Prepared transform("tokenize: {vocabulary: " + words + ", max_length: 3}", {2});
  EXPECT_THAT(message_of(
                  [&] {
                    transform({97, 0.5}, nullptr);
                  },
                  ErrorKind::data),
              HasSubstr("0.5 is no byte"));
  EXPECT_THAT(refused("tokenize: {vocabulary: " + words + ", max_length: 3}", {2, 1}), HasSubstr("one axis"));
  std::remove(words.c_str());
}

/// Turns a sample around, with a copy of it in scratch memory.
class Reverse final : public Transform {
 public:
  Shape prepare(const Shape& shape) override {
    count_ = shape.num_elements();
    return shape;
  }
  bool in_place() const override { return true; }
  std::int64_t scratch_values() const override { return count_; }
  void apply(const float* in, float* out, SampleRandom*, float* scratch) const override {
    std::copy_n(in, count_, scratch);
    std::reverse_copy(scratch, scratch + count_, out);
  }

 private:
  std::int64_t count_ = 0;
};

TEST(Transform, OneOfAUserThatWorksInPlaceMayNeedScratchMemory) {
  transform_table().add(
      {"reverse", "the values from last to first", {}, [](const Params&) -> std::unique_ptr<Transform> {
         return std::make_unique<Reverse>();
       }});
  TransformList list = list_of("reverse, scale: {factor: 2}");
  list.prepare({4});
  EXPECT_GE(list.scratch_values(), 4);
  EXPECT_FALSE(list.in_place()) << "Dataset gives a list that works in place no scratch memory";
  EXPECT_EQ(Prepared("reverse, scale: {factor: 2}, reverse, reverse", {3})({1, 2, 3}, nullptr),
            (Values{6, 4, 2}));
}

TEST(Transform, AListChangesShapesFromOneToTheNext) {
  Prepared chain("pad: {amount: 1}, scale: {factor: 2}, crop: {size: [3, 2], offset: 0}, clip: {max: 4}",
                 {2, 2, 1});
  EXPECT_EQ(chain.shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(chain({1, 2, 3, 4}, nullptr), (Values{0, 0, 0, 2, 0, 4}));
}

}  // namespace
}  // namespace lockstep
