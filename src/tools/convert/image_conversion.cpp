// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/image_conversion.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/hash.h"
#include "core/in_parallel.h"
#include "data/image_decode.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"
#include "io/jpeg_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr const char* kAdvice = "Do not use the files. The disk may be damaged: convert again.";

/// Without names.
constexpr std::int64_t kMostClasses = 100000;

/// Where images are until all of them are there.
std::string images_folder(const ConversionPlan& plan) { return plan.records_folder() + "/images"; }

/// Of class numbers without names: 00017, so that the order of names is that of numbers.
std::string class_folder(const SampleSource& source, std::int32_t label) {
  const std::vector<std::string>& names = source.data().class_names();
  if (names.empty()) return fmt::format("{:05}", label);
  LOCKSTEP_CHECK(label >= 0 && label < std::ssize(names));
  return names[static_cast<std::size_t>(label)];
}

template <typename T>
bool copy_as_bytes(const void* from, std::vector<std::uint8_t>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(from) + i * sizeof(T), sizeof value);
    const auto number = static_cast<double>(value);
    if (!(number >= 0 && number <= 255) || number != std::floor(number)) return false;
    to[i] = static_cast<std::uint8_t>(number);
  }
  return true;
}

/// False: a value is no whole number from 0 to 255.
bool copy_as_bytes(DType type, const void* from, std::vector<std::uint8_t>& to) {
  switch (type) {
    case DType::u8:
      std::memcpy(to.data(), from, to.size());
      return true;
    case DType::i32:
      return copy_as_bytes<std::int32_t>(from, to);
    case DType::i64:
      return copy_as_bytes<std::int64_t>(from, to);
    case DType::f32:
      return copy_as_bytes<float>(from, to);
    case DType::f64:
      return copy_as_bytes<double>(from, to);
    default:
      return false;
  }
}

void write_file(const std::string& path, const std::string& bytes) {
  const auto fail = [&](const char* what) {
    throw Error(ErrorKind::output, fmt::format("cannot {}: {}", what, std::strerror(errno)), path,
                "Check the free space, and that the folder can be written.");
  };
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) fail("create");
  if (!write_fully(file.get(), bytes.data(), bytes.size())) fail("write");
}

std::string line_of(const std::string& bytes, const std::string& name) {
  return fmt::format("{} {:016x} {}\n", bytes.size(), hash64(bytes), name);
}

}  // namespace

void check_images(const ConversionPlan& plan, const SampleSource& source) {
  const auto fail = [&](std::string what, std::string advice) {
    throw Error(ErrorKind::config, std::move(what), plan.output, std::move(advice));
  };
  const Shape& shape = source.shape();
  if (shape.rank() != 3 || (shape.last() != 1 && shape.last() != 3))
    fail(fmt::format("samples of {} are no images, which have a height, a width and 1 or 3 channels",
                     shape.to_string()),
         "Choose another format: --to hdf5.");
  if (plan.format == SampleFormat::jpeg && std::max(shape[0], shape[1]) > kMostJpegPixels)
    fail(fmt::format("JPEG has at most {} pixels in a row", kMostJpegPixels), "Choose --to png.");
  const Dataset& data = source.data();
  if (data.label_kind() == LabelKind::none) return;
  if (data.label_kind() != LabelKind::indices || data.num_label_columns() != 1)
    fail("labels are no classes, which name the folders of images",
         "Read the set without its labels (--set data.labels=null), or choose another format: --to hdf5.");
  for (const std::string& name : data.class_names())
    if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos || name.size() > 255)
      fail(fmt::format("class '{}' cannot be the name of a folder of images", name),
           "Name the classes otherwise.");
}

ImageConversion::ImageConversion(const ConversionPlan& plan, const SampleSource& source, std::int64_t shard,
                                 int threads, bool verify)
    : plan_(plan),
      source_(source),
      shard_(shard),
      samples_(plan.samples_of(shard)),
      threads_(threads),
      verify_(verify),
      lines_(static_cast<std::size_t>((samples_.size() + plan.item_samples - 1) / plan.item_samples)) {}

bool ImageConversion::advance(std::int64_t bytes) {
  const std::int64_t items = std::ssize(lines_);
  const std::int64_t count =
      std::clamp<std::int64_t>(bytes / (plan_.item_samples * source_.sample_bytes()), 1, items - next_);
  in_parallel(threads_, count, [&](std::int64_t i) {
    const std::int64_t item = next_ + i, first = samples_.first + item * plan_.item_samples;
    const std::int64_t samples = std::min(plan_.item_samples, samples_.last - first);
    const Samples block = source_.read(first, samples);
    std::string& lines = lines_[static_cast<std::size_t>(item)];
    for (std::int64_t j = 0; j < samples; ++j) lines += write(block, j, first + j);
  });
  next_ += count;
  written_ = std::min(next_ * plan_.item_samples, samples_.size());
  return next_ == items;
}

/// Returns the line of the list.
std::string ImageConversion::write(const Samples& samples, std::int64_t in_block, std::int64_t sample) const {
  const Shape& shape = source_.shape();
  Picture picture(static_cast<int>(shape[1]), static_cast<int>(shape[0]), static_cast<int>(shape[2]), 0);
  if (!copy_as_bytes(source_.type(), samples.features.data() + in_block * source_.sample_bytes(),
                     picture.pixels))
    throw Error(ErrorKind::data, "has a value that is no whole number from 0 to 255, as pixels are",
                source_.where(sample), "Choose another format: --to hdf5.");
  std::string folder;
  if (!samples.label_indices.empty()) {
    const std::int32_t label = samples.label_indices[static_cast<std::size_t>(in_block)];
    const std::int64_t classes = std::ssize(source_.data().class_names());
    if (label < 0 || label >= (classes > 0 ? classes : kMostClasses))
      throw Error(ErrorKind::data, fmt::format("label {} is no class", label), source_.where(sample),
                  "Classes are numbered from 0.");
    folder = class_folder(source_, label) + "/";
  }
  const std::string name = fmt::format("{}{:0{}}{}", folder, sample, std::to_string(plan_.samples - 1).size(),
                                       plan_.format == SampleFormat::png ? ".png" : ".jpg");
  const std::string path = images_folder(plan_) + "/" + name;
  std::error_code code;
  fs::create_directories(fs::path(path).parent_path(), code);
  const std::string bytes =
      plan_.format == SampleFormat::png ? png_of(picture) : jpeg_of(picture, plan_.file.quality);
  write_file(path, bytes);
  if (verify_) compare(path, bytes, picture, sample);
  return line_of(bytes, name);
}

/// Reads the file again: its bytes, and the pixels that training gets. Those of JPEG differ from the
/// sample's.
void ImageConversion::compare(const std::string& path, const std::string& bytes, const Picture& picture,
                              std::int64_t sample) const {
  const std::string back = read_whole_file(path, ErrorKind::output);
  thread_local ImageDecoder decoder;
  const ImageView view =
      decoder.decode(std::as_bytes(std::span(back)), picture.channels, true, [&] { return path; }, {});
  const bool same_size =
      view.width == picture.width && view.height == picture.height && view.channels == picture.channels;
  if (back == bytes && same_size &&
      (plan_.format == SampleFormat::jpeg ||
       std::memcmp(view.pixels, picture.pixels.data(), picture.pixels.size()) == 0))
    return;
  throw Error(ErrorKind::data, fmt::format("read back, the image differs from {}", source_.where(sample)),
              path, kAdvice);
}

void ImageConversion::publish() {
  std::string list;
  for (const std::string& lines : lines_) list += lines;
  write_file_atomically(plan_.files(shard_)[0], list, ErrorKind::output);
}

void flush_images(const ConversionPlan& plan) {
  const FileDescriptor folder(::open(plan.records_folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::syncfs(folder.get()) != 0)
    throw Error(ErrorKind::output,
                fmt::format("cannot flush the images to the disk: {}", std::strerror(errno)),
                plan.records_folder(), "Check the disk.");
}

bool images_are_there(const ConversionPlan& plan, std::int64_t shard) {
  try {
    std::istringstream list(read_whole_file(plan.files(shard)[0], ErrorKind::output));
    for (std::string line; std::getline(list, line);) {
      const std::string name = line.substr(line.find(' ', line.find(' ') + 1) + 1);
      if (line_of(read_whole_file(images_folder(plan) + "/" + name, ErrorKind::output), name) != line + "\n")
        return false;
    }
    return true;
  } catch (const Error&) {
    return false;  // gone or damaged: it is written again
  }
}

void publish_images(const ConversionPlan& plan, const SampleSource& source) {
  const std::string images = images_folder(plan);
  std::error_code code;
  // A class without images is a folder, too: the number of a class is its place among the folders.
  if (plan.labels) {
    std::int32_t classes = static_cast<std::int32_t>(source.data().class_names().size());
    if (classes == 0)
      for (const fs::directory_entry& entry : fs::directory_iterator(images, code))
        classes = std::max(classes, 1 + std::stoi(entry.path().filename().string()));
    for (std::int32_t label = 0; label < classes; ++label)
      fs::create_directories(fs::path(images) / class_folder(source, label), code);
  }
  fs::rename(images, plan.output, code);
  if (code)
    throw Error(ErrorKind::output, fmt::format("the folder cannot be moved here: {}", code.message()),
                plan.output, fmt::format("All images are in {}.", images));
  const std::string parent = fs::absolute(plan.output).lexically_normal().parent_path().string();
  flush_folder(parent, ErrorKind::output);
}

}  // namespace lockstep
