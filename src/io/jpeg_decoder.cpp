// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// libjpeg reports an error by a function that must not return: it jumps back to the function here that called
// libjpeg. So these functions (try_*) have no variables with destructors.
#include "io/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include "io/jpeg_errors.h"

namespace lockstep {

namespace {

/// Rows that are asked for at once.
constexpr int kRows = 16;
constexpr int kExifMarker = JPEG_APP0 + 1;
/// A scan of few bytes makes libjpeg go through the whole picture once more. Encoders write at most some ten.
constexpr int kMostScans = 100;

/// Of libjpeg's warnings, those that mean wrong or missing pixels. The others are about bytes between the
/// parts of a file and unusual headers.
bool is_damage(int message) {
  static constexpr std::array kDamage{JWRN_JPEG_EOF, JWRN_HUFF_BAD_CODE, JWRN_HIT_MARKER, JWRN_MUST_RESYNC,
                                      JWRN_ARITH_BAD_CODE};
  return std::find(kDamage.begin(), kDamage.end(), message) != kDamage.end();
}

void note(j_common_ptr info, int level) {
  if (level < 0 && is_damage(info->err->msg_code)) fail_to_caller(info);
}

void say_nothing(j_common_ptr) {}

/// Called while a picture of several scans is read.
void limit_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans)
    fail_to_caller(info, "it has more than 100 scans");
}
static_assert(kMostScans == 100, "as the message says");

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  jpeg_progress_mgr progress{};
  std::int64_t file_bytes = 0;

  bool try_create() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = fail_to_caller;
    errors.base.emit_message = note;
    errors.base.output_message = say_nothing;
    if (setjmp(errors.caller) != 0) return false;
    jpeg_create_decompress(&info);
    progress.progress_monitor = limit_scans;
    info.progress = &progress;
    jpeg_save_markers(&info, kExifMarker, 0xFFFF);
    return true;
  }

  bool try_begin(const unsigned char* bytes, unsigned long count, int channels) {
    if (setjmp(errors.caller) != 0) return false;
    jpeg_mem_src(&info, bytes, count);
    jpeg_read_header(&info, TRUE);
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK)
      info.out_color_space = JCS_CMYK;
    else
      info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    return true;
  }

  bool try_read(std::uint8_t* pixels) {
    if (setjmp(errors.caller) != 0) return false;
    jpeg_start_decompress(&info);
    const std::size_t row_bytes =
        static_cast<std::size_t>(info.output_width) * static_cast<std::size_t>(info.output_components);
    while (info.output_scanline < info.output_height) {
      JSAMPROW rows[kRows];
      const int count = std::min(kRows, static_cast<int>(info.output_height - info.output_scanline));
      for (int i = 0; i < count; ++i) rows[i] = pixels + (info.output_scanline + i) * row_bytes;
      jpeg_read_scanlines(&info, rows, static_cast<JDIMENSION>(count));
    }
    jpeg_finish_decompress(&info);
    return true;
  }

  [[noreturn]] void throw_damage() {
    const std::size_t left = info.src != nullptr ? info.src->bytes_in_buffer : 0;
    // At its end libjpeg gives itself two bytes more.
    const bool at_end = errors.base.msg_code == JWRN_JPEG_EOF || errors.base.msg_code == JERR_INPUT_EOF;
    const ImageDamage damage{at_end ? "the JPEG file ends early" : errors.message,
                             at_end ? file_bytes : file_bytes - static_cast<std::int64_t>(left)};
    jpeg_abort_decompress(&info);
    throw damage;
  }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  if (!state_->try_create()) throw ImageDamage{state_->errors.message, 0};
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->info); }

ImageHeader JpegDecoder::begin(std::span<const std::byte> file, int channels) {
  State& state = *state_;
  state.file_bytes = static_cast<std::int64_t>(file.size());
  jpeg_abort_decompress(&state.info);
  if (!state.try_begin(reinterpret_cast<const unsigned char*>(file.data()), file.size(), channels))
    state.throw_damage();
  ImageHeader header{.height = state.info.image_height,
                     .width = state.info.image_width,
                     .channels = state.info.out_color_space == JCS_CMYK ? 4
                                 : channels == 1                        ? 1
                                                                        : 3};
  for (jpeg_saved_marker_ptr marker = state.info.marker_list; marker != nullptr; marker = marker->next)
    if (marker->marker == kExifMarker)
      if (const int found = exif_orientation({reinterpret_cast<const std::byte*>(marker->data),
                                              static_cast<std::size_t>(marker->data_length)});
          found > 0) {
        header.orientation = found;
        break;
      }
  return header;
}

void JpegDecoder::read(std::uint8_t* pixels) {
  if (!state_->try_read(pixels)) state_->throw_damage();
}

}  // namespace lockstep
