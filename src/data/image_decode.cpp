// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/image_decode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "io/jpeg_decoder.h"
#include "io/png_decoder.h"

namespace lockstep {

namespace {

/// A header may claim any size; nobody trains on larger images.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;
constexpr std::array kJpegStart{std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};
constexpr std::array kPngStart{std::byte{0x89}, std::byte{'P'},  std::byte{'N'},  std::byte{'G'},
                               std::byte{'\r'}, std::byte{'\n'}, std::byte{0x1A}, std::byte{'\n'}};
constexpr const char* kDamageAdvice = "Copy or make the file again, or remove it.";

template <std::size_t Count>
bool begins_with(std::span<const std::byte> file, const std::array<std::byte, Count>& start) {
  return file.size() >= Count && std::equal(start.begin(), start.end(), file.begin());
}

/// What a file is that is no image for us, by its first bytes.
std::string name_of_format(std::span<const std::byte> file) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kStarts{
      {{"GIF8", "a GIF image"},
       {"BM", "a BMP image"},
       {"RIFF", "a WebP image"},
       {"II*", "a TIFF image"},
       {"MM", "a TIFF image"},
       {"P5", "a PGM image"},
       {"P6", "a PPM image"},
       {"<", "text"}}};
  for (const auto& [start, name] : kStarts)
    if (file.size() >= start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0)
      return std::string(name);
  return file.empty() ? "an empty file" : "neither a JPEG nor a PNG file";
}

/// Whether an orientation exchanges rows and columns.
bool is_transposed(int orientation) { return orientation >= 5; }

/// out(y, x) = in at the place that EXIF orientation 2 to 8 gives (TIFF 6.0, tag 274).
void turn(const ImageView& in, int orientation, std::uint8_t* out) {
  const std::int64_t height = is_transposed(orientation) ? in.width : in.height;
  const std::int64_t width = is_transposed(orientation) ? in.height : in.width;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      std::int64_t row = is_transposed(orientation) ? x : y, column = is_transposed(orientation) ? y : x;
      if (from_bottom) row = in.height - 1 - row;
      if (from_right) column = in.width - 1 - column;
      out = std::copy_n(in.pixels + (row * in.width + column) * in.channels, in.channels, out);
    }
}

/// In place: the pixels get fewer channels.
void cmyk_to_rgb(std::uint8_t* pixels, std::int64_t count) {
  const std::uint8_t* in = pixels;
  for (std::int64_t i = 0; i < count; ++i, in += 4) {
    const int key = in[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - in[c]) * key + 128;
      *pixels++ = static_cast<std::uint8_t>(key - ((product + (product >> 8)) >> 8));
    }
  }
}

void rgb_to_grey(std::uint8_t* pixels, std::int64_t count) {
  const std::uint8_t* in = pixels;
  for (std::int64_t i = 0; i < count; ++i, in += 3)
    *pixels++ = static_cast<std::uint8_t>((19595 * in[0] + 38470 * in[1] + 7471 * in[2] + 32768) >> 16);
}

}  // namespace

struct ImageDecoder::State {
  std::optional<JpegDecoder> jpeg;
  std::optional<PngDecoder> png;
  std::vector<std::uint8_t> pixels, turned;

  template <typename Decoder>
  ImageView decode(std::optional<Decoder>& decoder, std::span<const std::byte> file, int channels,
                   bool upright, const Room& room) {
    if (!decoder) decoder.emplace();
    const ImageHeader header = decoder->begin(file, channels);
    if (header.height < 1 || header.width < 1 || header.width > kMostPixels / header.height)
      throw ImageDamage{fmt::format("its header claims {} x {} pixels", header.height, header.width)};
    const std::int64_t count = header.height * header.width;
    const bool is_turned = upright && header.orientation != 1;
    const bool fits = header.height == room.height && header.width == room.width;
    ImageView view{room.pixels, header.height, header.width, channels};
    if (fits && !is_turned && header.channels == channels) {
      decoder->read(room.pixels);
      return view;
    }
    pixels.resize(static_cast<std::size_t>(count * header.channels));
    view.pixels = pixels.data();
    decoder->read(pixels.data());
    std::int64_t found = header.channels;
    if (found == 4) {
      cmyk_to_rgb(pixels.data(), count);
      found = 3;
    }
    if (found == 3 && channels == 1) rgb_to_grey(pixels.data(), count);
    if (!is_turned) return view;
    turned.resize(static_cast<std::size_t>(count * channels));
    turn(view, header.orientation, turned.data());
    if (is_transposed(header.orientation)) std::swap(view.height, view.width);
    view.pixels = turned.data();
    return view;
  }
};

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) {}

ImageDecoder::~ImageDecoder() = default;

ImageView ImageDecoder::decode(std::span<const std::byte> file, int channels, bool upright, ImageName name,
                               const Room& room) {
  try {
    if (begins_with(file, kJpegStart)) return state_->decode(state_->jpeg, file, channels, upright, room);
    if (begins_with(file, kPngStart)) return state_->decode(state_->png, file, channels, upright, room);
  } catch (const ImageDamage& damage) {
    throw Error(ErrorKind::data, fmt::format("cannot be decoded: {}", damage.what),
                fmt::format("{}, byte {}", name(), damage.byte), kDamageAdvice);
  }
  throw Error(ErrorKind::data, fmt::format("is {}", name_of_format(file)), name(),
              "Images are JPEG or PNG files: convert it, or leave it out.");
}

}  // namespace lockstep
