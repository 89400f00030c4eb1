// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader of image files: which files there are, and their classes. Holds about 30 bytes per
// file, so that a million files are a small list. Opens none of them.
//
// A sample's message is its path, and blocks are numbered through all files, so no file needs an object. A
// sample that must be decoded counts as expensive (SampleStore::decodes_samples): a stream in random order
// reads it alone, and the fingerprint takes at most 4,096 of them. Class names belong to a data set, so that
// predictions show them and classes.txt guards them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Replaces `bytes` by those of a whole regular file. Throws Error(data) with its name.
void read_file(const std::string& path, std::vector<std::byte>& bytes);

class ImageFiles {
 public:
  /// `skips_bad`: files that cannot be decoded are bad records, which are left out later.
  explicit ImageFiles(bool skips_bad = false) : skips_bad_(skips_bad) {}

  /// Adds a file. Its class is the name of its folder.
  void add_file(const std::string& path);
  /// Adds all images in a folder and the folders in it, in the order of the bytes of their names. The class
  /// of an image is the folder in `path` in which it lies, at any depth; of an image in `path` itself that is
  /// `path`'s own name. What is_left_over() names is left out, and so are files that are no images by their
  /// names. One whose name is that of an image of another format (.gif) is an error, unless its bytes are
  /// those of a JPEG or PNG file, or bad ones are skipped. Throws Error(data).
  void add_folder(const std::string& path);
  /// Adds a folder of folders of classes: an image that lies in none of these is an error. `only`:
  /// the folders in `path` that are read; null: all.
  void add_classes(const std::string& path, const std::vector<std::string>* only);

  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  std::string path(std::int64_t file) const;
  const std::string& class_of(std::int64_t file) const { return classes_[run_of(file).class_index]; }
  /// Its place in classes().
  std::int32_t class_index(std::int64_t file) const {
    return static_cast<std::int32_t>(run_of(file).class_index);
  }
  /// All names, with those of folders without images.
  const std::vector<std::string>& classes() const { return classes_; }
  /// Sorts classes() by their bytes.
  void sort_classes();
  /// Makes `names` the classes. Throws Error(data) that names a file of another class, with `advice`.
  void set_classes(const std::vector<std::string>& names, const std::string& advice);

 private:
  /// Files one after the other in one folder.
  struct Run {
    std::int64_t first;
    std::string folder;
    std::size_t class_index;
  };
  const Run& run_of(std::int64_t file) const;
  void add(const std::string& folder, std::string_view name, std::size_t class_index);
  void walk(const std::string& folder, std::size_t class_index, int depth);
  std::size_t index_of(const std::string& class_name);

  bool is_image(const std::string& folder, const std::string& name) const;

  bool skips_bad_;
  std::vector<Run> runs_;
  std::string names_;                ///< of all files, one after the other
  std::vector<std::uint64_t> ends_;  ///< of each file's name in names_
  std::vector<std::string> classes_;
  std::map<std::string, std::size_t, std::less<>> place_;  ///< of each class
};

}  // namespace lockstep
