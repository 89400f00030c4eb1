// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "data/image_decode.h"
#include "data/left_over_names.h"
#include "io/file_error.h"
#include "io/staged_files.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 64;  ///< of folders in folders; a loop of links ends there
constexpr std::array<std::string_view, 5> kRead{".jpg", ".jpeg", ".png", ".jpe", ".jfif"};
constexpr std::array<std::string_view, 11> kNotRead{".gif", ".bmp",  ".webp", ".tif", ".tiff", ".ppm",
                                                    ".pgm", ".heic", ".avif", ".jp2", ".jxl"};

std::string ending_of(std::string_view name) {
  const auto dot = name.rfind('.');
  std::string ending(dot == std::string_view::npos ? std::string_view{} : name.substr(dot));
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return ending;
}

template <std::size_t Count>
bool is_among(const std::array<std::string_view, Count>& endings, const std::string& ending) {
  return std::ranges::find(endings, ending) != endings.end();
}

struct Entry {
  std::string name;
  bool is_folder;
};

std::vector<Entry> sorted_entries(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator{}; at.increment(failed)) {
    std::string name = at->path().filename().string();
    std::error_code unknown;  // a broken link is no folder; opening it names it
    if (!is_left_over(name)) entries.push_back({std::move(name), at->is_directory(unknown)});
  }
  if (failed)
    throw Error(ErrorKind::data, fmt::format("the folder cannot be read: {}", failed.message()), folder,
                "Check the path and the folder's permissions.");
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

/// The name of a folder, also of "." and "a/..".
std::string name_of_folder(const std::string& folder) {
  std::error_code failed;
  fs::path whole = fs::absolute(folder.empty() ? "." : folder, failed).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.filename().string();
}

}  // namespace

// Not by a ByteSource, which opens one file after the other in this process: threads open images side by
// side.
void read_file(const std::string& path, std::vector<std::byte>& bytes) {
  struct Descriptor {
    int value;
    ~Descriptor() {
      if (value >= 0) ::close(value);
    }
  };
  const auto fail = [&](const char* what) {
    throw FileError(fmt::format("cannot {}{}: {}", what, staged_note(path), std::strerror(errno)), path,
                    "Check that the file is still there, and its permissions.");
  };
  const Descriptor file{
      ::open(path_to_open(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // does not wait for a FIFO
  struct stat status {};
  if (file.value < 0 || ::fstat(file.value, &status) != 0) fail("open");
  if (!S_ISREG(status.st_mode))
    throw FileError("is not a regular file", path, "Give the path of a file, not of a folder or device.");
  bytes.resize(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(file.value, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read");
    if (got == 0) {  // became shorter: the decoder says where it ends
      bytes.resize(done);
      break;
    }
    done += static_cast<std::size_t>(got);
  }
}

bool ImageFiles::is_image(const std::string& folder, const std::string& name) const {
  const std::string ending = ending_of(name);
  if (!is_among(kNotRead, ending)) return is_among(kRead, ending);
  if (skips_bad_) return true;
  const std::string path = folder + "/" + name;
  std::vector<std::byte> bytes;
  read_file(path, bytes);
  require_image(bytes, [&] { return path; });
  return true;
}

std::size_t ImageFiles::index_of(const std::string& class_name) {
  const auto [known, is_new] = place_.try_emplace(class_name, classes_.size());
  if (is_new) classes_.push_back(class_name);
  return known->second;
}

void ImageFiles::add(const std::string& folder, std::string_view name, std::size_t class_index) {
  if (runs_.empty() || runs_.back().folder != folder || runs_.back().class_index != class_index)
    runs_.push_back({size(), folder, class_index});
  names_ += name;
  ends_.push_back(names_.size());
}

void ImageFiles::add_file(const std::string& path) {
  const fs::path whole(path);
  const std::string folder = whole.parent_path().string();
  const bool same = !runs_.empty() && runs_.back().folder == folder;
  add(folder, whole.filename().string(), same ? runs_.back().class_index : index_of(name_of_folder(folder)));
}

void ImageFiles::add_folder(const std::string& path) {
  const std::string own = name_of_folder(path);
  for (const Entry& entry : sorted_entries(path))
    if (entry.is_folder)
      walk(path + "/" + entry.name, index_of(entry.name), 1);
    else if (is_image(path, entry.name))
      add(path, entry.name, index_of(own));
}

void ImageFiles::add_classes(const std::string& path, const std::vector<std::string>* only) {
  for (const Entry& entry : sorted_entries(path)) {
    if (!entry.is_folder && is_image(path, entry.name))
      throw Error(
          ErrorKind::data, "lies in no folder of a class", path + "/" + entry.name,
          "The class of an image is the folder in which it lies: move it there, or write labels: none.");
    if (entry.is_folder && (only == nullptr || std::ranges::find(*only, entry.name) != only->end()))
      walk(path + "/" + entry.name, index_of(entry.name), 1);
  }
}

void ImageFiles::walk(const std::string& folder, std::size_t class_index, int depth) {
  if (depth > kDeepest)
    throw Error(ErrorKind::data, "folders lie in folders without end", folder,
                "A link may lead back to a folder above it.");
  for (const Entry& entry : sorted_entries(folder))
    if (entry.is_folder)
      walk(folder + "/" + entry.name, class_index, depth + 1);
    else if (is_image(folder, entry.name))
      add(folder, entry.name, class_index);
}

const ImageFiles::Run& ImageFiles::run_of(std::int64_t file) const {
  return *std::prev(std::ranges::upper_bound(runs_, file, {}, &Run::first));
}

std::string ImageFiles::path(std::int64_t file) const {
  const auto at = static_cast<std::size_t>(file);
  const std::size_t first = at == 0 ? 0 : ends_[at - 1];
  const std::string& folder = run_of(file).folder;
  return (folder.empty() || folder.ends_with('/') ? folder : folder + "/") +
         names_.substr(first, ends_[at] - first);
}

void ImageFiles::sort_classes() {
  std::vector<std::string> sorted = classes_;
  std::ranges::sort(sorted);
  set_classes(sorted, "");
}

void ImageFiles::set_classes(const std::vector<std::string>& names, const std::string& advice) {
  for (Run& run : runs_) {
    const std::string& name = classes_[run.class_index];
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      throw Error(ErrorKind::data,
                  fmt::format("its folder '{}' is none of the {} classes", name, names.size()),
                  path(run.first), advice);
    run.class_index = static_cast<std::size_t>(found - names.begin());
  }
  classes_ = names;
  place_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) place_.emplace(names[i], i);
}

}  // namespace lockstep
