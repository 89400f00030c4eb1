// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers of images: the options that they share, and how a file becomes a sample: bytes,
// height x width x channels.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "data/image_decode.h"
#include "data/image_resize.h"
#include "data/reader_options.h"

namespace lockstep {

/// What samples look like.
struct ImageForm {
  Shape shape;  ///< height, width, channels; without axes: that of the first image
  int channels = 3;
  std::optional<ResizeFilter> resize;  ///< empty: images must have the size
  bool crop = false, upright = true;
  PixelForm pixels;

  DType dtype() const { return pixels.wide ? DType::u16 : DType::u8; }
  std::int64_t sample_bytes() const {
    return shape.num_elements() * static_cast<std::int64_t>(size_in_bytes(dtype()));
  }
};
/// Nothing: none. For option_as().
std::optional<ResizeFilter> resize_filter(const Params& params, const ParamSpec& option);
/// For option_as(). Throws Error(config) unless it is 8 or 16.
bool has_16_bits(const Params& params, const ParamSpec& option);
struct ImageSize {
  std::optional<std::vector<std::int64_t>> size;
};

inline constexpr std::array kImageOptions{
    option<&ImageSize::size>("size", "null", between(1, 65535).note("height, width; one number for both"),
                             "pixels of a sample; null: those of the first image, which all must have"),
    option<&ImageForm::channels>("channels", "3", between(1, 3).note("1 (grey) or 3 (red, green, blue)"),
                                 "of a sample; images are converted"),
    option_as<resize_filter, &ImageForm::resize>(
        ParamType::string, "resize", "bilinear", one_of("bilinear|bicubic|nearest|none"),
        "how images get this size; none: an image of another size is an error"),
    option_as<is_second_choice, &ImageForm::crop>(
        ParamType::string, "fit", "stretch", one_of("stretch|crop"),
        "stretch: height and width are resized independently; crop: the image is resized until it covers "
        "the size, and its middle is cut out"),
    option_as<has_16_bits, &ImageForm::pixels, &PixelForm::wide>(
        ParamType::integer, "bits", "8", between(8, 16).note("8 or 16"),
        "of a value. 8: PNG files with 16 bits, such as depth maps, lose the lower ones, and a warning says "
        "so; 16: they are kept, and values of other files are stretched (255 becomes 65535)"),
    option_as<is_second_choice, &ImageForm::pixels, &PixelForm::indices>(
        ParamType::string, "palette", "color", one_of("color|index"),
        "of PNG files with a palette, the colour of a pixel or its index, as masks of classes have it; with "
        "index, grey values stay as they are stored"),
    option<&ImageForm::upright>(
        "exif_orientation", "true", {},
        "turn images as their EXIF data say, as viewers do; false: take the pixels as they are stored")};

/// A reader's own options, followed by these.
template <std::size_t kCount>
constexpr auto with_image_options(const std::array<ParamSpec, kCount>& own) {
  return joined_options(own, kImageOptions);
}

/// Reads the options. Throws Error(config).
ImageForm image_form(const Params& params);

/// Turns files into samples, on one thread at a time.
class ImageWork {
 public:
  /// The shape that an image gives without an option `size`.
  Shape shape_of(const ImageForm& form, std::span<const std::byte> file, ImageName name);
  /// Writes a sample of form.shape. Throws Error(data).
  void read(const ImageForm& form, std::span<const std::byte> file, ImageName name, void* sample);

  std::vector<std::byte> file;  ///< room for the caller

 private:
  ImageDecoder decoder_;
  std::optional<ImageResizer> resizer_;
};

/// One ImageWork per thread that reads, kept from read to read.
class ImageWorks {
 public:
  class Loan {
   public:
    explicit Loan(ImageWorks& from);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ImageWork& operator*() { return *work_; }
    ImageWork* operator->() { return work_.get(); }

   private:
    ImageWorks& from_;
    std::unique_ptr<ImageWork> work_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ImageWork>> free_;
};

}  // namespace lockstep
