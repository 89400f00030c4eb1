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
  using namespace std::string_view_literals;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kStarts{
      {{"GIF8", "a GIF image"},
       {"BM", "a BMP image"},
       {"RIFF", "a WebP image"},
       {"II*", "a TIFF image"},
       {"MM\0*"sv, "a TIFF image"},
       {"P5", "a PGM image"},
       {"P6", "a PPM image"},
       {"\0\0\0\x0CjP"sv, "a JPEG 2000 image"},
       {"\xFF\x0A"sv, "a JPEG XL image"},
       {"\0\0\0\x0CJXL"sv, "a JPEG XL image"},
       {"version https://git-lfs", "a pointer of Git LFS, not the image (git lfs pull fetches it)"},
       {"<", "text"}}};
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  for (const auto& [start, name] : kStarts)
    if (bytes.starts_with(start)) return std::string(name);
  if (bytes.substr(std::min<std::size_t>(4, bytes.size())).starts_with("ftyp"))
    return bytes.substr(8).starts_with("avif") ? "an AVIF image" : "a HEIC image or a film";
  return file.empty() ? "an empty file" : "neither a JPEG nor a PNG file";
}

[[noreturn]] void fail_no_image(std::span<const std::byte> file, ImageName name) {
  throw Error(ErrorKind::data, fmt::format("is {}", name_of_format(file)), name(),
              "Images are JPEG or PNG files: convert it, or leave it out: bad_records: skip leaves out such "
              "files, if they are few.");
}

/// Whether an orientation exchanges rows and columns.
bool is_transposed(int orientation) { return orientation >= 5; }

/// out(y, x) = in at the place that EXIF orientation 2 to 8 gives (TIFF 6.0, tag 274).
void turn(const ImageView& in, int orientation, std::uint8_t* out) {
  const std::int64_t height = is_transposed(orientation) ? in.width : in.height;
  const std::int64_t width = is_transposed(orientation) ? in.height : in.width;
  const std::int64_t pixel_bytes = in.channels * in.value_bytes;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      std::int64_t row = is_transposed(orientation) ? x : y, column = is_transposed(orientation) ? y : x;
      if (from_bottom) row = in.height - 1 - row;
      if (from_right) column = in.width - 1 - column;
      out = std::copy_n(in.pixels + (row * in.width + column) * pixel_bytes, pixel_bytes, out);
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

/// In place.
template <typename T>
void rgb_to_grey(T* pixels, std::int64_t count) {
  const T* in = pixels;
  for (std::int64_t i = 0; i < count; ++i, in += 3)
    *pixels++ = static_cast<T>((19595U * in[0] + 38470U * in[1] + 7471U * in[2] + 32768U) >> 16);
}

/// In place: bytes become values of 16 bits, from the last one on.
void widen(std::uint8_t* pixels, std::int64_t count, std::uint16_t factor) {
  auto* const out = reinterpret_cast<std::uint16_t*>(pixels);
  for (std::int64_t i = count; i-- > 0;) {
    const auto value = static_cast<std::uint16_t>(pixels[i] * factor);
    std::memcpy(out + i, &value, sizeof value);
  }
}

}  // namespace

struct ImageDecoder::State {
  std::optional<JpegDecoder> jpeg;
  std::optional<PngDecoder> png;
  std::vector<std::uint8_t> pixels, turned;

  ImageView decode_png(std::span<const std::byte> file, int channels, bool upright, const Room& room,
                       const PixelForm& form) {
    if (!png) png.emplace();
    return decode(*png, png->begin(file, channels, form), channels, upright, room, form);
  }

  ImageView decode_jpeg(std::span<const std::byte> file, int channels, bool upright, const Room& room,
                        const PixelForm& form) {
    if (form.indices) throw ImageDamage{"it is a JPEG file, which has no palette", 0};
    if (!jpeg) jpeg.emplace();
    return decode(*jpeg, jpeg->begin(file, channels), channels, upright, room, form);
  }

  template <typename Decoder>
  ImageView decode(Decoder& decoder, const ImageHeader& header, int channels, bool upright, const Room& room,
                   const PixelForm& form) {
    if (header.height < 1 || header.width < 1 || header.width > kMostPixels / header.height)
      throw ImageDamage{fmt::format("its header claims {} x {} pixels", header.height, header.width)};
    const std::int64_t count = header.height * header.width, value_bytes = form.wide ? 2 : 1;
    const bool is_turned = upright && header.orientation != 1;
    const bool fits = header.height == room.height && header.width == room.width;
    ImageView view{room.pixels, header.height, header.width, channels, value_bytes, header.is_narrowed};
    if (fits && !is_turned && header.channels == channels && header.value_bytes == value_bytes) {
      decoder.read(room.pixels);
      return view;
    }
    pixels.resize(static_cast<std::size_t>(
        count * std::max(header.channels * header.value_bytes, channels * value_bytes)));
    view.pixels = pixels.data();
    decoder.read(pixels.data());
    std::int64_t found = header.channels;
    if (found == 4) {
      cmyk_to_rgb(pixels.data(), count);
      found = 3;
    }
    if (found == 3 && channels == 1) {
      if (header.value_bytes == 1)
        rgb_to_grey(pixels.data(), count);
      else
        rgb_to_grey(reinterpret_cast<std::uint16_t*>(pixels.data()), count);
    }
    if (header.value_bytes < value_bytes) widen(pixels.data(), count * channels, form.indices ? 1 : 257);
    if (!is_turned) return view;
    turned.resize(static_cast<std::size_t>(count * channels * value_bytes));
    turn(view, header.orientation, turned.data());
    if (is_transposed(header.orientation)) std::swap(view.height, view.width);
    view.pixels = turned.data();
    return view;
  }
};

void require_image(std::span<const std::byte> start, ImageName name) {
  if (!begins_with(start, kJpegStart) && !begins_with(start, kPngStart)) fail_no_image(start, name);
}

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) {}

ImageDecoder::~ImageDecoder() = default;

ImageView ImageDecoder::decode(std::span<const std::byte> file, int channels, bool upright, ImageName name,
                               const Room& room, const PixelForm& form) {
  require_image(file, name);
  try {
    if (begins_with(file, kJpegStart)) return state_->decode_jpeg(file, channels, upright, room, form);
    return state_->decode_png(file, channels, upright, room, form);
  } catch (const ImageDamage& damage) {
    throw Error(ErrorKind::data, fmt::format("cannot be decoded: {}", damage.what),
                fmt::format("{}, byte {}", name(), damage.byte), kDamageAdvice);
  }
}

}  // namespace lockstep
