// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// libpng reports an error by a function that must not return: it jumps back to the function here that called
// libpng. So these functions (try_*) have no variables with destructors.
#include "io/png_decoder.h"

#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <png.h>

namespace lockstep {

struct PngDecoder::State {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> file;
  std::size_t at = 0;
  std::jmp_buf caller;
  char message[128] = {};
  ImageHeader header;
  std::vector<png_bytep> rows;

  [[noreturn]] static void fail(png_structp png, png_const_charp text) {
    auto* const state = static_cast<State*>(png_get_error_ptr(png));
    std::snprintf(state->message, sizeof state->message, "%s", text);
    std::longjmp(state->caller, 1);
  }
  static void say_nothing(png_structp, png_const_charp) {}

  static void give(png_structp png, png_bytep to, std::size_t count) {
    auto* const state = static_cast<State*>(png_get_io_ptr(png));
    if (count > state->file.size() - state->at) {
      state->at = state->file.size();
      png_error(png, "the PNG file ends early");
    }
    std::memcpy(to, state->file.data() + state->at, count);
    state->at += count;
  }

  bool try_begin(int channels, const PixelForm& form) {
    if (setjmp(caller) != 0) return false;
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, say_nothing);
    if (png == nullptr)
      fail_early("libpng has no memory, or another version than Lockstep was compiled with");
    info = png_create_info_struct(png);
    if (info == nullptr) png_error(png, "no memory");
    png_set_read_fn(png, this, give);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(png, info);
    const int type = png_get_color_type(png, info), bits = png_get_bit_depth(png, info);
    const bool grey = (type & PNG_COLOR_MASK_COLOR) == 0;
    header = {};
    if (form.indices) {
      if (!grey && type != PNG_COLOR_TYPE_PALETTE) png_error(png, "it has colours without a palette");
      if (bits == 16 && !form.wide) png_error(png, "its values have 16 bits, which bits: 16 reads");
      png_set_packing(png);
    } else {
      if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
      if (bits < 8) png_set_expand_gray_1_2_4_to_8(png);
      if (grey && channels == 3) png_set_gray_to_rgb(png);
    }
    if (bits == 16 && !form.wide) png_set_scale_16(png);
    if (bits == 16 && form.wide && std::endian::native == std::endian::little) png_set_swap(png);
    header.is_narrowed = bits == 16 && !form.wide;
    header.value_bytes = bits == 16 && form.wide ? 2 : 1;
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    header.height = png_get_image_height(png, info);
    header.width = png_get_image_width(png, info);
    header.channels = png_get_channels(png, info);
    if (png_get_rowbytes(png, info) !=
        static_cast<std::size_t>(header.width * header.channels * header.value_bytes))
      png_error(png, "pixels of an unknown form");
    png_uint_32 bytes = 0;
    png_bytep exif = nullptr;
    header.orientation = 1;
    if (png_get_eXIf_1(png, info, &bytes, &exif) != 0 && exif != nullptr)
      if (const int found = exif_orientation({reinterpret_cast<const std::byte*>(exif), bytes}); found > 0)
        header.orientation = found;
    return true;
  }

  [[noreturn]] void fail_early(const char* text) {
    std::snprintf(message, sizeof message, "%s", text);
    std::longjmp(caller, 1);
  }

  bool try_read() {
    if (setjmp(caller) != 0) return false;
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
    return true;
  }

  void destroy() {
    if (png != nullptr) png_destroy_read_struct(&png, info != nullptr ? &info : nullptr, nullptr);
    png = nullptr;
    info = nullptr;
  }

  [[noreturn]] void throw_damage() {
    destroy();
    throw ImageDamage{message, static_cast<std::int64_t>(at)};
  }
};

PngDecoder::PngDecoder() : state_(std::make_unique<State>()) {}

PngDecoder::~PngDecoder() { state_->destroy(); }

ImageHeader PngDecoder::begin(std::span<const std::byte> file, int channels, const PixelForm& form) {
  State& state = *state_;
  state.destroy();
  state.file = file;
  state.at = 0;
  if (!state.try_begin(channels, form)) state.throw_damage();
  return state.header;
}

void PngDecoder::read(std::uint8_t* pixels) {
  State& state = *state_;
  state.rows.resize(static_cast<std::size_t>(state.header.height));
  const auto row_bytes = static_cast<std::size_t>(state.header.width * state.header.channels) *
                         static_cast<std::size_t>(state.header.value_bytes);
  for (std::size_t row = 0; row < state.rows.size(); ++row) state.rows[row] = pixels + row * row_bytes;
  if (!state.try_read()) state.throw_damage();
  state.destroy();
}

}  // namespace lockstep
