// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/data_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/name_pattern.h"
#include "data/left_over_names.h"
#include "data/reader_options.h"

namespace lockstep {

namespace {

constexpr std::string_view kRegex = "re:";

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// The folder of the configuration is no pattern, whatever its name.
std::string escaped(const std::string& folder) {
  std::string text;
  for (const char c : folder) {
    if (std::strchr("*?[]\\", c) != nullptr) text += '\\';
    text += c;
  }
  return text;
}

struct Matches {
  glob_t found{};
  ~Matches() { globfree(&found); }
};

std::vector<std::string> matches(const std::string& pattern, const std::string& base_directory) {
  const bool absolute = pattern.starts_with('/') || base_directory.empty();
  const std::string whole = absolute ? pattern : escaped(base_directory) + "/" + pattern;
  Matches matches;
  errno = 0;
  const int code = ::glob(whole.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &matches.found);
  const std::string where = resolved_path(pattern, base_directory);
  if (code == GLOB_NOMATCH)
    throw Error(ErrorKind::data, "matches no file", where,
                "Check the folder and the pattern: * is any text, ? any character, [0-9] one of them.");
  if (code != 0)
    throw Error(ErrorKind::data,
                fmt::format("cannot be searched: {}", errno == 0 ? "out of memory" : std::strerror(errno)),
                where, "Check the permissions of the folders.");
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < matches.found.gl_pathc; ++i)
    paths.push_back(std::filesystem::path(matches.found.gl_pathv[i]).lexically_normal().string());
  std::sort(paths.begin(), paths.end());  // by bytes: char_traits compares as unsigned char
  return paths;
}

/// `pattern`: "re:FOLDER/EXPRESSION", in which a regular expression matches whole names of files.
std::vector<std::string> regex_matches(const std::string& pattern, const std::string& base_directory) {
  namespace fs = std::filesystem;
  const std::string text = pattern.substr(kRegex.size());
  const auto slash = text.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : text.substr(0, slash);
  const NamePattern name = [&] {
    try {
      return NamePattern(std::string(kRegex) + text.substr(slash == std::string::npos ? 0 : slash + 1));
    } catch (const Error& error) {
      throw Error(ErrorKind::config, error.what_happened(), pattern, error.advice());
    }
  }();
  const std::string place = folder == "." ? base_directory : resolved_path(folder, base_directory);
  std::error_code failed;
  std::vector<std::string> paths;
  fs::directory_iterator at(place, failed), end;
  for (; !failed && at != end; at.increment(failed))
    if (name.matches(at->path().filename().string())) paths.push_back(at->path().lexically_normal().string());
  if (failed)
    throw Error(ErrorKind::data, fmt::format("the folder cannot be searched: {}", failed.message()), place,
                "The regular expression after re: is that of the file's name: folders are written out.");
  if (paths.empty())
    throw Error(ErrorKind::data, fmt::format("no file has a name that matches '{}'", name.text()), place,
                "The regular expression matches whole names: re:part-[0-9]+\\.h5");
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The files of a folder but hidden ones and those that other programs put next to data (_SUCCESS).
std::vector<std::string> files_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<std::string> paths;
  fs::directory_iterator at(folder, failed), end;
  for (; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (is_left_over(name) || name.starts_with('_') || !at->is_regular_file(ignored)) continue;
    paths.push_back(at->path().lexically_normal().string());
  }
  if (failed)
    throw Error(ErrorKind::data, fmt::format("the folder cannot be read: {}", failed.message()), folder,
                "Check its permissions.");
  if (paths.empty())
    throw Error(ErrorKind::data, "the folder has no files", folder,
                "A folder means the files in it, without those of folders below it.");
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// What an item means: a file, or those of a folder or a pattern.
std::vector<std::string> files_of(const std::string& item, const std::string& base_directory) {
  const std::string path = resolved_path(item, base_directory);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return files_in(path);
  if (exists(path)) return {path};
  if (item.starts_with(kRegex)) return regex_matches(item, base_directory);
  if (item.find_first_of("*?[") != std::string::npos) return matches(item, base_directory);
  return {path};  // the reader reports it
}

void require_distinct(const std::vector<std::string>& paths) {
  std::map<std::pair<dev_t, ino_t>, const std::string*> seen;
  for (const std::string& path : paths) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;  // the reader reports it
    const auto [other, first] = seen.try_emplace({status.st_dev, status.st_ino}, &path);
    if (!first)
      throw Error(
          ErrorKind::data,
          path == *other->second ? "is named twice" : fmt::format("is the same file as {}", *other->second),
          path, "Name each file once; two patterns must not match the same file.");
  }
}

}  // namespace

std::vector<std::string> data_files(const Params& params, std::string_view name,
                                    const std::string& base_directory) {
  const std::vector<std::string>& items = params.strings(name);
  if (items.empty()) throw params.error(name, "names no file", "Give a file, a list of files, or a pattern.");
  return data_files(items, base_directory);
}

std::vector<std::string> data_files(std::span<const std::string> items, const std::string& base_directory) {
  std::vector<std::string> paths;
  for (const std::string& item : items) {
    const std::vector<std::string> found = files_of(item, base_directory);
    paths.insert(paths.end(), found.begin(), found.end());
  }
  if (paths.size() > 1) require_distinct(paths);
  return paths;
}

std::vector<std::string> files_and_folders(std::span<const std::string> items,
                                           const std::string& base_directory) {
  std::vector<std::string> paths, files;  // files: the items between two folders
  const auto add_files = [&] {
    const std::vector<std::string> found = data_files(files, base_directory);
    paths.insert(paths.end(), found.begin(), found.end());
    files.clear();
  };
  for (const std::string& item : items) {
    const std::string path = resolved_path(item, base_directory);
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      files.push_back(item);
      continue;
    }
    add_files();
    paths.push_back(path);
  }
  add_files();
  return paths;
}

std::vector<std::string> files_of_path(const Params& params, const std::string& base_directory) {
  return data_files(params, "path", base_directory);
}

std::vector<std::string> file_of_path(const Params& params, const std::string& base_directory) {
  return {resolved_path(params.string("path"), base_directory)};
}

std::string name_of_files(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return paths.front();
  return fmt::format("{} to {} ({} files)", paths.front(), paths.back(), paths.size());
}

void begin_file(DatasetParts& parts, const std::string& path, std::int64_t first_record) {
  parts.files.push_back({path, parts.size, first_record});
}

std::int64_t total_records(std::span<const std::int64_t> counts, const std::string& source) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts)
    if (__builtin_add_overflow(total, count, &total))
      throw Error(ErrorKind::data, "the files have more rows than 63 bits count", source, "Check the files.");
  return total;
}

std::vector<RowRange> rows_of_files(std::span<const std::int64_t> counts, const RowRange& chosen) {
  std::vector<RowRange> ranges;
  std::int64_t passed = 0;
  for (const std::int64_t count : counts) {
    ranges.push_back({std::clamp<std::int64_t>(chosen.first - passed, 0, count),
                      std::clamp<std::int64_t>(chosen.last - passed, 0, count)});
    passed += count;
  }
  return ranges;
}

void add_files(DatasetParts& parts, const std::vector<std::string>& names,
               const std::vector<RowRange>& ranges) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (ranges[i].first == ranges[i].last) continue;
    if (parts.size == 0) parts.first_record = ranges[i].first;
    if (names.size() > 1) begin_file(parts, names[i], ranges[i].first);
    parts.size += ranges[i].last - ranges[i].first;
  }
}

}  // namespace lockstep
