// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// libjpeg reports an error by a function that must not return: it jumps back to the function here that called
// libjpeg, which has no variables with destructors.
#include "io/jpeg_file.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "core/error.h"
#include "io/jpeg_errors.h"

namespace lockstep {

namespace {

constexpr int kFullColours = 90;

/// `bytes` is allocated by libjpeg, also after a failure.
bool try_compress(const Picture& picture, int quality, JpegErrors& errors, unsigned char** bytes,
                  unsigned long* size) {
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = fail_to_caller;
  if (setjmp(errors.caller) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, bytes, size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.dct_method = JDCT_ISLOW;
  if (quality >= kFullColours && picture.channels == 3)
    info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(picture.at(0, static_cast<int>(info.next_scanline)));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

std::string jpeg_of(const Picture& picture, int quality) {
  LOCKSTEP_CHECK((picture.channels == 1 || picture.channels == 3) && quality >= 1 && quality <= 100);
  JpegErrors errors{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done = try_compress(picture, quality, errors, &bytes, &size);
  std::string file(reinterpret_cast<const char*>(bytes), done ? size : 0);
  std::free(bytes);
  if (!done)
    throw Error(ErrorKind::bug, fmt::format("libjpeg cannot write a picture of {} x {}: {}", picture.width,
                                            picture.height, errors.message));
  return file;
}

}  // namespace lockstep
