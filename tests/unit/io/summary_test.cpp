// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <cmath>
#include <limits>

#include "checkpoint_testing.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/event_reader.h"
#include "io/projector_files.h"
#include "io/summary_media.h"
#include "io/summary_plugins.h"
#include "io/summary_tags.h"
#include "io/summary_writer.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::CheckpointFolder;

/// The 8-bit numbers of a PNG file, as RGBA.
std::vector<int> pixels_of(const SummaryValue& value) {
  const std::string& png = std::get<ImageData>(value.value).png;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, png.data(), png.size()), 0);
  image.format = PNG_FORMAT_RGBA;
  std::vector<std::uint8_t> bytes(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, bytes.data(), 0, nullptr), 0);
  return {bytes.begin(), bytes.end()};
}

std::vector<int> grey(const SummaryValue& value) {
  std::vector<int> first;
  const std::vector<int> all = pixels_of(value);
  for (std::size_t i = 0; i < all.size(); i += 4) first.push_back(all[i]);
  return first;
}

std::vector<std::string> tags_of(const std::vector<SummaryValue>& values) {
  std::vector<std::string> tags;
  for (const SummaryValue& value : values) tags.push_back(value.tag);
  return tags;
}

TEST(ImageValues, EachPictureIsScaledByItself) {
  const std::vector<float> pixels = {0, 1, 2, 0.5F, -1, 0, 0.5F, 0.25F, 0, 1e-7F, 0, 0};
  const std::vector<SummaryValue> values = image_values("in", {3, 2, 2, 1}, pixels);
  EXPECT_THAT(tags_of(values), ElementsAre("in/image/0", "in/image/1", "in/image/2"));
  EXPECT_THAT(grey(values[0]), ElementsAre(0, 127, 255, 63));   // v * 255 / 2
  EXPECT_THAT(grey(values[1]), ElementsAre(1, 128, 191, 159));  // v * 127 + 128
  EXPECT_THAT(grey(values[2]), ElementsAre(0, 0, 0, 0));
}

TEST(ImageValues, PixelsThatAreNotFiniteHaveTheBadColour) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> pixels = {1, nan, 3, 1, 2, 4, 100, infinity, -infinity};
  const std::vector<SummaryValue> values =
      image_values("in", {1, 1, 3, 3}, pixels, {.max_outputs = 1, .bad_color = {9, 8, 7, 255}});
  EXPECT_THAT(tags_of(values), ElementsAre("in/image"));
  EXPECT_THAT(pixels_of(values[0]), ElementsAre(9, 8, 7, 255, 63, 127, 255, 255, 9, 8, 7, 255));
}

TEST(ImageValues, BytesAreStoredAsTheyAre) {
  const std::vector<std::uint8_t> pixels = {1, 2, 3, 40, 50, 60, 70, 80};
  const auto values = image_values("in", {5, 1, 1, 4}, std::vector<std::uint8_t>(20, 7));
  EXPECT_EQ(values.size(), 3U);
  EXPECT_THAT(pixels_of(image_values("in", {2, 1, 1, 4}, pixels, {.max_outputs = 2})[1]),
              ElementsAre(50, 60, 70, 80));
  EXPECT_THROW(image_values("in", {1, 2, 2, 2}, pixels), Error);
  EXPECT_THROW(image_values("in", {1, 2, 2, 1}, pixels), Error);
}

TEST(AudioValues, SamplesBecome16BitNumbers) {
  const std::vector<float> samples = {0, 0.5F, -1, 1, -2, 1.0F / 32768};
  const auto values = audio_values("tone", {1, 3, 2}, samples, 8000.4, 1);
  ASSERT_THAT(tags_of(values), ElementsAre("tone/audio"));
  const auto& sound = std::get<AudioData>(values[0].value);
  EXPECT_EQ(sound.frames, 3);
  EXPECT_EQ(sound.channels, 2);
  ASSERT_EQ(sound.encoded.size(), 44U + 12);
  EXPECT_EQ(sound.encoded.substr(0, 4) + sound.encoded.substr(8, 8), "RIFFWAVEfmt ");
  std::uint32_t rate = 0;
  std::memcpy(&rate, sound.encoded.data() + 24, 4);
  EXPECT_EQ(rate, 8000U);
  std::vector<std::int16_t> numbers(6);
  std::memcpy(numbers.data(), sound.encoded.data() + 44, 12);
  EXPECT_THAT(numbers, ElementsAre(0, 16384, -32768, 32767, -32768, 1));
  EXPECT_THROW(audio_values("tone", {1, 3, 2}, samples, 0), Error);
}

TEST(SummaryTags, ScopesFamiliesAndUniqueNames) {
  SummaryTags tags;
  EXPECT_EQ(clean_tag("//a b:c/d-e.f"), "a_b_c/d-e.f");
  EXPECT_EQ(tags.tag("loss"), "loss");
  EXPECT_EQ(tags.tag("loss"), "loss_1");
  {
    const auto outer = tags.scope("encoder");
    EXPECT_EQ(tags.tag("loss"), "encoder/loss");
    const auto inner = tags.scope("layer 1");
    EXPECT_EQ(tags.tag("rate", "rates"), "rates/encoder/layer_1/rates/rate");
  }
  const auto again = tags.scope("encoder");
  EXPECT_EQ(tags.tag("loss"), "encoder_1/loss");
}

TEST(SummaryCollections, MergeAllKeepsTheOrderAndRefusesATagTwice) {
  SummaryCollections collections;
  const auto producer = [](const char* tag) {
    return [tag](std::int64_t step) { return std::vector<SummaryValue>{{tag, static_cast<float>(step)}}; };
  };
  collections.add(producer("b"));
  collections.add(producer("a"), {"summaries", "slow"});
  EXPECT_THAT(tags_of(collections.merge_all(3)), ElementsAre("b", "a"));
  EXPECT_THAT(tags_of(collections.merge_all(3, "slow")), ElementsAre("a"));
  EXPECT_THAT(collections.merge_all(3, "none"), ::testing::IsEmpty());
  collections.add(producer("a"));
  EXPECT_THROW(collections.merge_all(3), Error);
}

TEST(ProjectorFiles, ConfigurationVectorsAndLabels) {
  const CheckpointFolder folder;
  const std::vector<float> words = {1, 2, 3, 4, 5, 6}, ids = {0.5F, -1};
  const ProjectorTable tables[] = {{.name = "words/embeddings",
                                    .rows = 3,
                                    .columns = 2,
                                    .values = words,
                                    .metadata = "word\tcount\nthe\t9\na\t8\nof\t7\n"},
                                   {.name = "ids \"x\"", .rows = 2, .columns = 1, .values = ids}};
  write_projector(folder.path(), tables, 2);
  EXPECT_EQ(read_whole_file(folder / "projector/words_embeddings.tsv"), "1\t2\n3\t4\n");
  EXPECT_EQ(read_whole_file(folder / "projector/words_embeddings.metadata.tsv"),
            "word\tcount\nthe\t9\na\t8\n");
  EXPECT_EQ(
      read_whole_file(folder / "projector_config.pbtxt"),
      "embeddings {\n  tensor_name: \"words/embeddings\"\n  tensor_path: \"projector/words_embeddings.tsv\"\n"
      "  tensor_shape: 2\n  tensor_shape: 2\n  metadata_path: "
      "\"projector/words_embeddings.metadata.tsv\"\n}\n"
      "embeddings {\n  tensor_name: \"ids \\\"x\\\"\"\n  tensor_path: \"projector/ids \\\"x\\\".tsv\"\n"
      "  tensor_shape: 2\n  tensor_shape: 1\n}\n");
}

TEST(SummaryWriter, ReopenGoesOnInANewFileAndCloseEndsIt) {
  const CheckpointFolder folder;
  SummaryWriter writer(folder.path());
  writer.add_scalar("loss", 1, 0.5);
  writer.add_run_metadata("step 1", 1, "times");
  EXPECT_THROW(writer.add_run_metadata("step 1", 2, "times"), Error);
  const std::string first = writer.path();
  writer.reopen();
  EXPECT_NE(writer.path(), first);
  writer.add_text("notes", 2, "text");
  writer.close();
  writer.add_scalar("loss", 3, 0.5);
  const auto count = [](const std::string& path) {
    EventReader reader(path);
    int records = 0;
    while (reader.next()) ++records;
    return records;
  };
  EXPECT_EQ(count(first), 3);
  EXPECT_EQ(count(writer.path()), 2);
  EXPECT_EQ(writer.error(), "");
}

}  // namespace
}  // namespace lockstep
