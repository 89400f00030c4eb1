// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "data/image_resize.h"
#include "unit/data/image_vectors.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageReaderTest : public FolderTest {
 protected:
  void put(const std::string& name, const std::string& image) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    const Bytes file = picture(image).file;
    write(name, {file.begin(), file.end()});
  }
  /// Three classes with 2, 1 and 3 images of 21 x 18 pixels.
  void put_classes() const {
    put("set/b/2.png", "grey.png");
    put("set/b/1.PNG", "rgb.png");
    put("set/a/x.jpeg", "rgb.jpg");
    put("set/c/deep/er/z.png", "palette.png");
    put("set/c/k.png", "rgba.png");
    put("set/c/a.jpg", "grey.jpg");
    write("set/b/notes.txt", "no image");
    write("set/b/.hidden.png", "no image");
  }
  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    if (std::ranges::find(options, "path", &Options::value_type::first) == options.end())
      options.emplace_back("path", "set");
    return open_dataset("images", params_for("images", options), folder_);
  }
  std::vector<std::string> names(const Dataset& data) const {
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < data.size(); ++i) all.push_back(data.where(i).substr(folder_.size() + 1));
    return all;
  }
  Error config_error(const Options& options) const {
    Error error = error_of([&] { open(options); });
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    return error;
  }
};

std::vector<float> as_floats(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

TEST_F(ImageReaderTest, AFolderPerClassSortedByName) {
  put_classes();
  const auto data = open();
  EXPECT_THAT(names(*data), ElementsAre("set/a/x.jpeg", "set/b/1.PNG", "set/b/2.png", "set/c/a.jpg",
                                        "set/c/deep/er/z.png", "set/c/k.png"));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(0, 1, 1, 2, 2, 2));
  EXPECT_THAT(data->class_names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(data->feature_shape(), Shape({21, 18, 3}));
  EXPECT_EQ(data->feature_dtype(), DType::u8);
  EXPECT_EQ(features_of(*data, {1}), as_floats(picture("rgb.png").pixels));
  EXPECT_EQ(features_of(*data, {4}), as_floats(picture("palette.png").pixels));
}

TEST_F(ImageReaderTest, ClassesChooseFoldersAndTheirNumbers) {
  put_classes();
  std::filesystem::create_directory(path("set/empty"));
  const auto data = open({{"classes", "[c, empty, a]"}});
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(data->class_names(), ElementsAre("c", "empty", "a"));
  expect_data_error([&] { open({{"classes", "[a, d]"}}); }, path("set"), "has no folder of the class 'd'");
  EXPECT_THAT(config_error({{"classes", "[a, a]"}}).what_happened(), HasSubstr("names 'a' twice"));
}

TEST_F(ImageReaderTest, ListsAndPatternsTakeTheFolderAsClass) {
  put_classes();
  const auto data = open({{"path", "[set/c/k.png, set/b/*.p*]"}});
  EXPECT_THAT(names(*data), ElementsAre("set/c/k.png", "set/b/2.png"));
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(1, 0));
  EXPECT_THAT(data->class_names(), ElementsAre("b", "c"));
  const auto chosen = open({{"path", "set/c/k.png"}, {"classes", "[x, c, y]"}});
  EXPECT_THAT(labels_of<std::int32_t>(*chosen), ElementsAre(1));
  expect_data_error(
      [&] {
        open({{"path", "set/c/k.png"}, {"classes", "[x, y]"}});
      },
      path("set/c/k.png"), "its folder 'c' is none of the 2 classes");
}

TEST_F(ImageReaderTest, WithoutLabelsAFolderIsReadWithAllInIt) {
  put_classes();
  put("set/top.png", "rgb.png");
  expect_data_error([&] { open(); }, path("set/top.png"), "lies in no folder of a class");
  const auto data = open({{"labels", "none"}, {"rows", "[1, 7]"}});
  EXPECT_THAT(names(*data), ElementsAre("set/b/1.PNG", "set/b/2.png", "set/c/a.jpg", "set/c/deep/er/z.png",
                                        "set/c/k.png", "set/top.png"));
  EXPECT_EQ(data->label_kind(), LabelKind::none);
  EXPECT_TRUE(data->class_names().empty());
}

TEST_F(ImageReaderTest, SizeResizesOrCrops) {
  put("set/a/x.png", "rgb.png");
  const Picture one = picture("rgb.png");
  const ImageView view{one.pixels.data(), 21, 18, 3};
  for (const auto& [name, filter] : {std::pair{"nearest", ResizeFilter::nearest},
                                     {"bilinear", ResizeFilter::bilinear},
                                     {"bicubic", ResizeFilter::bicubic}}) {
    Bytes expected(10 * 14 * 3);
    ImageResizer(filter).resize(view, 10, 14, {0, 10}, {0, 14}, expected.data());
    EXPECT_EQ(features_of(*open({{"size", "[10, 14]"}, {"resize", name}})), as_floats(expected)) << name;
    // 21 x 18 to 16 x 14, of which the middle 10 rows.
    ImageResizer(filter).resize(view, 16, 14, {3, 13}, {0, 14}, expected.data());
    EXPECT_EQ(features_of(*open({{"size", "[10, 14]"}, {"resize", name}, {"fit", "crop"}})),
              as_floats(expected))
        << name;
  }
  Bytes wide(14 * 8 * 3);  // 21 x 18 to 14 x 12
  ImageResizer(ResizeFilter::bilinear).resize(view, 14, 12, {0, 14}, {2, 10}, wide.data());
  EXPECT_EQ(features_of(*open({{"size", "[14, 8]"}, {"fit", "crop"}})), as_floats(wide));
  EXPECT_EQ(open({{"size", "12"}, {"channels", "1"}})->feature_shape(), Shape({12, 12, 1}));
}

TEST_F(ImageReaderTest, WithoutASizeAllImagesHaveThatOfTheFirst) {
  put("set/a/1.png", "rgb.png");
  put("set/a/2.png", "interlaced.png");
  for (const Options& options : {Options{}, {{"size", "[21, 18]"}, {"resize", "none"}}})
    expect_data_error([&] { open(options); }, path("set/a/2.png"),
                      "has 11 x 9 pixels (height x width), but samples have 21 x 18");
}

TEST_F(ImageReaderTest, AStreamGivesTheSetInMemory) {
  put_classes();
  const auto memory = open({{"block_samples", "1"}}),
             stream = open({{"memory_gb", "0.000005"}, {"reader_threads", "1"}, {"block_samples", "1"}});
  ASSERT_NE(stream->stream(), nullptr);
  EXPECT_EQ(stream->fingerprint(), memory->fingerprint());
  EXPECT_EQ(features_of(*stream), features_of(*memory));
  EXPECT_EQ(labels_of<std::int32_t>(*stream), labels_of<std::int32_t>(*memory));
  EXPECT_EQ(stream->where(3), path("set/c/a.jpg"));
  EXPECT_EQ(stream->blocks().num_blocks(), memory->blocks().num_blocks());
}

TEST_F(ImageReaderTest, ThreadsReportTheFirstDamagedFile) {
  for (int i = 10; i < 60; ++i) put("set/a/" + std::to_string(i) + ".png", "rgb.png");
  for (const std::string bad : {"set/a/57.png", "set/a/31.png", "set/a/32.png"})
    std::filesystem::resize_file(path(bad), 100 + static_cast<std::uintmax_t>(bad[7]));
  for (const char* threads : {"1", "2", "7"})
    for (int again = 0; again < 5; ++again)
      expect_data_error(
          [&] {
            open({{"reader_threads", threads}});
          },
          path("set/a/31.png") + ", byte 149", "cannot be decoded: the PNG file ends early");
}

TEST_F(ImageReaderTest, FilesThatAreNoImages) {
  put_classes();
  write("set/b/3.png", "hello");
  expect_data_error([&] { open(); }, path("set/b/3.png"), "is neither a JPEG nor a PNG file");
  std::filesystem::remove(path("set/b/3.png"));
  write("set/b/4.webp", "");
  expect_data_error([&] { open(); }, path("set/b/4.webp"), "is an empty file");
  std::filesystem::remove(path("set/b/4.webp"));
  ASSERT_EQ(mkfifo(path("set/b/5.png").c_str(), 0600), 0);
  expect_data_error([&] { open(); }, path("set/b/5.png"), "is not a regular file");
  std::filesystem::remove(path("set/b/5.png"));
  std::filesystem::create_symlink("nowhere", path("set/b/6.png"));
  expect_data_error([&] { open(); }, path("set/b/6.png"), "cannot open: No such file");
  expect_data_error([&] { open({{"path", "elsewhere"}}); }, path("elsewhere"), "cannot open: No such file");
  std::filesystem::create_directories(path("bare/a"));
  expect_data_error([&] { open({{"path", "bare"}}); }, path("bare"), "holds no images");
}

TEST_F(ImageReaderTest, ALoopOfLinksEnds) {
  put_classes();
  std::filesystem::create_symlink(path("set/c"), path("set/c/deep/again"));
  EXPECT_THAT(error_of([&] { open(); }).what_happened(), HasSubstr("folders lie in folders without end"));
}

TEST_F(ImageReaderTest, BadOptions) {
  put_classes();
  for (const auto& [options, what] : std::vector<std::pair<Options, std::string>>{
           {{{"size", "[0, 4]"}}, "size: must be [1, 65535]"},
           {{{"size", "[1, 2, 3]"}}, "size: must be one or two whole numbers"},
           {{{"channels", "4"}}, "channels: must be [1, 3]"},
           {{{"channels", "2"}}, "channels: is 2"},
           {{{"fit", "crop"}}, "fit: crop needs a size"},
           {{{"resize", "bicubic"}}, "resize: needs a size"},
           {{{"size", "8"}, {"fit", "crop"}, {"resize", "none"}}, "fit: crop needs images to be resized"},
           {{{"labels", "none"}, {"classes", "[a]"}}, "classes: labels: none reads no classes"}})
    EXPECT_THAT(config_error(options).what_happened(), HasSubstr(what));
}

TEST_F(ImageReaderTest, InputForPredictions) {
  put_classes();
  const auto trained = open({{"size", "[10, 8]"}});
  const Params params = params_for("images", {{"path", "set"}, {"size", "[10, 8]"}});
  const auto input = [&](std::vector<std::string> paths, bool labels) {
    return open_input("images", params,
                      {.paths = std::move(paths),
                       .feature_shape = trained->feature_shape(),
                       .class_names = trained->class_names(),
                       .labels = labels});
  };
  const auto folder = input({path("set")}, true);
  EXPECT_EQ(labels_of<std::int32_t>(*folder), labels_of<std::int32_t>(*trained));
  EXPECT_EQ(features_of(*folder), features_of(*trained));
  EXPECT_EQ(input({path("set")}, false)->label_kind(), LabelKind::none);
  EXPECT_THAT(labels_of<std::int32_t>(*input({path("set/c/k.png"), path("set/b") + "/"}, true)),
              ElementsAre(2, 1, 1));
  put("other/x.png", "rgb.png");
  EXPECT_EQ(input({path("other")}, true)->label_kind(), LabelKind::none);
  expect_data_error(
      [&] {
        input({path("set/a"), path("other/x.png")}, true);
      },
      path("other/x.png"), "its folder 'other' is none of the 3 classes");
}

}  // namespace
}  // namespace lockstep::testing
