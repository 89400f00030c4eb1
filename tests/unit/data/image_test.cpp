// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Decoding and resizing of images, compared with Pillow (tests/vectors/make_image_vectors.py).
#include <cstdlib>
#include <sstream>

#include "core/range.h"
#include "data/image_decode.h"
#include "data/image_resize.h"
#include "io/image_header.h"
#include "unit/data/image_vectors.h"

namespace lockstep::testing {
namespace {

constexpr auto no_name = [] { return std::string("a/b"); };

Bytes decoded(ImageDecoder& decoder, const Bytes& file, int channels, bool upright = true) {
  const ImageView view = decoder.decode(std::as_bytes(std::span(file)), channels, upright, no_name, {});
  return {view.pixels, view.pixels + view.height * view.width * view.channels};
}

int largest_difference(const Bytes& a, const Bytes& b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(int{a[i]} - int{b[i]}));
  return largest;
}

TEST(ImageTest, PixelsAreThoseOfPillow) {
  ImageDecoder decoder;
  int count = 0;
  for (const Picture& one : pictures()) {
    SCOPED_TRACE(one.name);
    const ImageView view = decoder.decode(std::as_bytes(std::span(one.file)), 3, true, no_name, {});
    ASSERT_EQ(view.height, one.height);
    ASSERT_EQ(view.width, one.width);
    ASSERT_EQ(view.channels, 3);
    // Pillow brings another version of libjpeg-turbo.
    EXPECT_LE(largest_difference({view.pixels, view.pixels + one.pixels.size()}, one.pixels),
              one.is_jpeg() ? 2 : 0);
    ++count;
  }
  EXPECT_EQ(count, 24);
}

TEST(ImageTest, AnImageThatFitsIsWrittenInPlace) {
  ImageDecoder decoder, other;
  for (const Picture& one : pictures()) {
    SCOPED_TRACE(one.name);
    for (const std::int64_t more : {0, 1}) {
      Bytes room(one.pixels.size() + 3, 77);
      const ImageView view = decoder.decode(std::as_bytes(std::span(one.file)), 3, true, no_name,
                                            {room.data(), one.height + more, one.width});
      const bool is_turned = one.name.starts_with("turned") && one.name != "turned1.jpg";
      EXPECT_EQ(view.pixels == room.data(), more == 0 && !is_turned && one.name != "cmyk.jpg");
      EXPECT_EQ(Bytes(view.pixels, view.pixels + one.pixels.size()), decoded(other, one.file, 3));
      EXPECT_EQ(Bytes(room.end() - 3, room.end()), Bytes(3, 77));
    }
  }
}

TEST(ImageTest, GreyIsTheLuminance) {
  ImageDecoder decoder;
  for (const Picture& one : pictures()) {
    SCOPED_TRACE(one.name);
    Bytes grey;
    for (std::size_t i = 0; i < one.pixels.size(); i += 3)
      grey.push_back(static_cast<std::uint8_t>(
          (19595 * one.pixels[i] + 38470 * one.pixels[i + 1] + 7471 * one.pixels[i + 2] + 32768) >> 16));
    // A pixel of a JPEG file may be outside the range of colours, and is cut there.
    EXPECT_LE(largest_difference(decoded(decoder, one.file, 1), grey), one.is_jpeg() ? 3 : 0);
  }
}

TEST(ImageTest, OrientationIsThatOfViewersOrNone) {
  ImageDecoder decoder;
  const Bytes stored = decoded(decoder, picture("turned1.jpg").file, 1);
  std::vector<Bytes> turned;
  for (int value = 2; value <= 8; ++value) {
    const Picture one = picture("turned" + std::to_string(value) + ".jpg");
    EXPECT_EQ(decoded(decoder, one.file, 1, false), stored) << value;
    EXPECT_EQ(one.height, value >= 5 ? 16 : 8);
    turned.push_back(decoded(decoder, one.file, 1));
    EXPECT_NE(turned.back(), stored) << value;
  }
  for (std::size_t i = 0; i < turned.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(turned[i], turned[k]);
  const Picture colour = picture("turned.png");
  const ImageView view = decoder.decode(std::as_bytes(std::span(colour.file)), 3, false, no_name, {});
  EXPECT_EQ(view.height, 3);
}

TEST(ImageTest, DamagedOrientationIsNone) {
  const auto orientation = [](std::string text) { return exif_orientation(std::as_bytes(std::span(text))); };
  const std::string good("II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0\6\0\0\0", 22);
  EXPECT_EQ(orientation(good), 6);
  EXPECT_EQ(orientation(std::string("Exif\0\0", 6) + good), 6);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_EQ(orientation(good.substr(0, length)), 0) << length;
  for (const auto& [at, value] : {std::pair{18, 9}, {18, 0}, {0, 'X'}, {2, 41}, {4, 200}, {12, 4}}) {
    std::string bad = good;
    bad[static_cast<std::size_t>(at)] = static_cast<char>(value);
    EXPECT_EQ(orientation(bad), 0) << at;
  }
}

TEST(ImageTest, EveryTruncationIsRefusedAtItsEnd) {
  ImageDecoder decoder;
  for (const std::string name : {"rgb.jpg", "progressive.jpg", "grey.jpg", "rgb.png", "interlaced.png"}) {
    const Picture one = picture(name);
    for (std::size_t length = 0; length < one.file.size(); ++length) {
      const Bytes part(one.file.begin(), one.file.begin() + static_cast<std::ptrdiff_t>(length));
      const Error error = error_of([&] { decoded(decoder, part, 3); });
      ASSERT_EQ(error.kind(), ErrorKind::data) << name << length;
      if (length < 8) continue;  // of no known format
      ASSERT_EQ(error.where(), "a/b, byte " + std::to_string(length)) << error.what();
      ASSERT_THAT(error.what_happened(), ::testing::HasSubstr("ends early"));
    }
    EXPECT_EQ(decoded(decoder, one.file, 3).size(), one.pixels.size()) << "after errors";
  }
}

TEST(ImageTest, EveryChangedByteOfAPngIsFound) {
  ImageDecoder decoder;
  const Picture one = picture("grey16.png");
  for (std::size_t at = 8; at < one.file.size(); ++at) {
    Bytes bad = one.file;
    bad[at] ^= 0x40;
    EXPECT_EQ(error_of([&] { decoded(decoder, bad, 3); }).kind(), ErrorKind::data) << at;
  }
}

TEST(ImageTest, DamagedEntropyCodingOfAJpegIsFound) {
  ImageDecoder decoder;
  Picture one = picture("rgb.jpg");
  const std::size_t middle = one.file.size() - 40;
  one.file[middle] = 0xFF;
  one.file[middle + 1] = 0xD9;  // the end of the image, too early
  EXPECT_THAT(error_of([&] { decoded(decoder, one.file, 3); }).what_happened(),
              ::testing::HasSubstr("premature end of data segment"));
}

TEST(ImageTest, AJpegOfManyScansIsRefused) {
  ImageDecoder decoder;
  const Bytes file = picture("progressive.jpg").file;
  const Bytes begin_of_scan{0xFF, 0xDA};
  const auto first = std::search(file.begin(), file.end(), begin_of_scan.begin(), begin_of_scan.end());
  const auto next = std::find_if(first + 2, file.end() - 1, [&](const std::uint8_t& byte) {
    return byte == 0xFF && (&byte)[1] != 0;  // the marker that follows the scan
  });
  ASSERT_NE(next, file.end() - 1);
  const auto with_scans = [&](int more) {
    Bytes all(file.begin(), next);
    for (int i = 0; i < more; ++i) all.insert(all.end(), first, next);
    all.insert(all.end(), next, file.end());
    return all;
  };
  EXPECT_EQ(decoded(decoder, with_scans(20), 3), decoded(decoder, file, 3));
  const Error error = error_of([&] { decoded(decoder, with_scans(200), 3); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_THAT(error.what_happened(), ::testing::HasSubstr("it has more than 100 scans"));
  EXPECT_EQ(decoded(decoder, file, 3).size(), picture("progressive.jpg").pixels.size()) << "after errors";
}

TEST(ImageTest, OtherFilesAreNamed) {
  ImageDecoder decoder;
  for (const auto& [start, what] : {std::pair{"GIF89a....", "is a GIF image"},
                                    {"RIFF....WEBP", "is a WebP image"},
                                    {"....ftypavif", "is an AVIF image"},
                                    {"....ftypheic", "is a HEIC image"},
                                    {"version https://git-lfs.github.com", "is a pointer of Git LFS"},
                                    {"hello world", "is neither a JPEG nor a PNG file"},
                                    {"", "is an empty file"}}) {
    const std::string text = start;
    const Bytes file(text.begin(), text.end());
    expect_data_error([&] { decoded(decoder, file, 3); }, "a/b", what);
  }
}

TEST(ImageTest, AnImageOfImpossibleSizeIsRefusedBeforeMemoryIsTaken) {
  ImageDecoder decoder;
  Bytes file = picture("rgb.jpg").file;
  const Bytes sof{0xFF, 0xC0};
  const auto at = std::search(file.begin(), file.end(), sof.begin(), sof.end());
  ASSERT_NE(at, file.end());
  at[5] = at[6] = at[7] = at[8] = 0xFD;  // 65021 x 65021
  expect_data_error([&] { decoded(decoder, file, 3); }, "a/b, byte 0",
                    "its header claims 65021 x 65021 pixels");
}

TEST(ResizeTest, WideVectorsGiveTheSameBits) {
  const std::int64_t height = 67, width = 83;
  for (const std::int64_t channels : {1, 3}) {
    Bytes image(static_cast<std::size_t>(height * width * channels));
    for (std::size_t i = 0; i < image.size(); ++i)
      image[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
    const ImageView view{image.data(), height, width, channels};
    for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic})
      for (const auto& [tall, broad] :
           {std::pair<std::int64_t, std::int64_t>{31, 29}, {90, 200}, {67, 5}, {3, 83}}) {
        Bytes wide(static_cast<std::size_t>(tall * broad * channels)), plain = wide;
        ImageResizer(filter).resize(view, tall, broad, {0, tall}, {0, broad}, wide.data());
        ImageResizer(filter, false).resize(view, tall, broad, {0, tall}, {0, broad}, plain.data());
        EXPECT_EQ(wide, plain) << tall << " x " << broad << " x " << channels;
      }
  }
}

TEST(ResizeTest, EightBitImagesAreThoseOfPillow) {
  const Hdf5Vectors from = image_vectors();
  const Bytes before = from.read<std::uint8_t>("before", H5T_NATIVE_UINT8);
  const Bytes after = from.read<std::uint8_t>("after", H5T_NATIVE_UINT8);
  std::size_t in = 0, out = 0;
  for (const std::string& line : from.lines("cases")) {
    SCOPED_TRACE(line);
    std::string name;
    std::int64_t height = 0, width = 0, new_height = 0, new_width = 0, channels = 0;
    std::istringstream(line) >> name >> height >> width >> new_height >> new_width >> channels;
    ImageResizer resizer(name == "nearest"    ? ResizeFilter::nearest
                         : name == "bilinear" ? ResizeFilter::bilinear
                                              : ResizeFilter::bicubic);
    const ImageView view{before.data() + in, height, width, channels};
    Bytes resized(static_cast<std::size_t>(new_height * new_width * channels));
    resizer.resize(view, new_height, new_width, {0, new_height}, {0, new_width}, resized.data());
    const auto expected = after.begin() + static_cast<std::ptrdiff_t>(out);
    EXPECT_EQ(resized, Bytes(expected, expected + static_cast<std::ptrdiff_t>(resized.size())));
    // A part of it, by the same object.
    const Range rows{new_height / 3, new_height - new_height / 4},
        columns{new_width / 4, new_width - new_width / 3};
    Bytes part(static_cast<std::size_t>(rows.size() * columns.size() * channels)), cut;
    resizer.resize(view, new_height, new_width, rows, columns, part.data());
    for (std::int64_t y = rows.first; y < rows.last; ++y)
      cut.insert(cut.end(), resized.begin() + (y * new_width + columns.first) * channels,
                 resized.begin() + (y * new_width + columns.last) * channels);
    EXPECT_EQ(part, cut);
    in += static_cast<std::size_t>(height * width * channels);
    out += resized.size();
  }
  EXPECT_EQ(in, before.size());
  EXPECT_EQ(out, after.size());
}

}  // namespace
}  // namespace lockstep::testing
