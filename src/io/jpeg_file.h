// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pictures as JPEG files, by libjpeg-turbo.
#pragma once

#include <string>

#include "io/png_file.h"

namespace lockstep {

/// The bytes of a baseline JPEG file of `quality` 1 to 100 (libjpeg's scale); colours at half resolution
/// below
/// 90. The accurate integer transform: the same bytes on all processors. Throws Error(bug) for a picture that
/// JPEG cannot hold.
std::string jpeg_of(const Picture& picture, int quality);

/// The largest width and height.
inline constexpr int kMostJpegPixels = 65500;

}  // namespace lockstep
