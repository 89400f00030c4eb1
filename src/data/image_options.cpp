// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/image_options.h"

#include <algorithm>
#include <atomic>

#include "core/log.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostPixels = 65535;  // of an axis

/// The size to which an image is resized so that it covers height x width; rounded down.
std::pair<std::int64_t, std::int64_t> covering(const ImageView& image, std::int64_t height,
                                               std::int64_t width) {
  if (width * image.height >= height * image.width) return {image.height * width / image.width, width};
  return {height, image.width * height / image.height};
}

/// Once in a process.
void warn_of_narrow(ImageName name) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    log_warning(
        "{}: has 16 bits per value, of which samples keep 8: round(value / 257), which is 0 for values below "
        "129. For depth maps and other measured values, write bits: 16",
        name());
}

}  // namespace

std::optional<ResizeFilter> resize_filter(const Params& params, const ParamSpec& option) {
  if (params.string(option.name) == "none") return std::nullopt;
  return static_cast<ResizeFilter>(choice_index(params, option));
}

bool has_16_bits(const Params& params, const ParamSpec& option) {
  const std::int64_t bits = params.integer(option.name);
  if (bits != 8 && bits != 16) throw params.error(option.name, fmt::format("is {}", bits), "Write 8 or 16.");
  return bits == 16;
}

ImageForm image_form(const Params& params) {
  auto form = params.as<ImageForm>();
  if (form.channels != 1 && form.channels != 3)
    throw params.error("channels", fmt::format("is {}", form.channels),
                       "Write 1 for grey, or 3 for red, green and blue.");
  if (form.pixels.indices && form.channels != 1)
    throw params.error("palette", "is index, and samples have 3 channels", "Write channels: 1.");
  const std::optional<std::vector<std::int64_t>> written = params.as<ImageSize>().size;
  if (!written) {
    if (form.crop) throw params.error("fit", "crop needs a size", "Add size: [height, width].");
    if (params.given("resize") && form.resize)
      throw params.error("resize", "needs a size", "Add size: [height, width].");
    form.resize.reset();
    return form;
  }
  const std::vector<std::int64_t>& size = *written;
  const bool fits = (size.size() == 1 || size.size() == 2) &&
                    std::ranges::all_of(size, [](std::int64_t n) { return n >= 1 && n <= kMostPixels; });
  if (!fits)
    throw params.error("size", "must be one or two whole numbers from 1 to 65535",
                       "Write size: [height, width].");
  if (form.crop && !form.resize)
    throw params.error("fit", "crop needs images to be resized", "Write resize: bilinear, or leave out fit.");
  if ((form.pixels.wide || form.pixels.indices) && form.resize && *form.resize != ResizeFilter::nearest)
    throw params.error(
        "resize",
        form.pixels.indices ? "would mix the indices of a palette" : "has 8 bits, and samples have bits: 16",
        "Write resize: nearest, or resize: none.");
  form.shape = Shape{size.front(), size.back(), std::int64_t{form.channels}};
  return form;
}

Shape ImageWork::shape_of(const ImageForm& form, std::span<const std::byte> bytes, ImageName name) {
  const ImageView image = decoder_.decode(bytes, form.channels, form.upright, name, {}, form.pixels);
  return {image.height, image.width, image.channels};
}

void ImageWork::read(const ImageForm& form, std::span<const std::byte> bytes, ImageName name, void* to) {
  const std::int64_t height = form.shape[0], width = form.shape[1];
  auto* const sample = static_cast<std::uint8_t*>(to);
  ImageView image =
      decoder_.decode(bytes, form.channels, form.upright, name, {sample, height, width}, form.pixels);
  if (image.is_narrowed) warn_of_narrow(name);
  if (image.pixels == sample) return;
  image.channels *= image.value_bytes;  // pixels are moved, not changed, unless they have 8 bits
  if (image.height == height && image.width == width) {
    std::copy_n(image.pixels, height * width * image.channels, sample);
    return;
  }
  if (!form.resize)
    throw Error(ErrorKind::data,
                fmt::format("has {} x {} pixels (height x width), but samples have {} x {}", image.height,
                            image.width, height, width),
                name(), "Add size: [height, width] and resize: bilinear to the section data.");
  if (!resizer_) resizer_.emplace(*form.resize);
  if (!form.crop) return resizer_->resize(image, height, width, {0, height}, {0, width}, sample);
  const auto [tall, wide] = covering(image, height, width);
  const std::int64_t top = (tall - height) / 2, left = (wide - width) / 2;
  resizer_->resize(image, tall, wide, {top, top + height}, {left, left + width}, sample);
}

ImageWorks::Loan::Loan(ImageWorks& from) : from_(from) {
  {
    const std::lock_guard lock(from_.mutex_);
    if (!from_.free_.empty()) {
      work_ = std::move(from_.free_.back());
      from_.free_.pop_back();
    }
  }
  if (work_ == nullptr) work_ = std::make_unique<ImageWork>();
}

ImageWorks::Loan::~Loan() {
  const std::lock_guard lock(from_.mutex_);
  from_.free_.push_back(std::move(work_));
}

}  // namespace lockstep
