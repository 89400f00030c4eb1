// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What readers find by reading whole files, such as where each record begins, kept in a folder of the run, so
// that the next job need not read the files again. A file of the folder belongs to the files of one set; what
// it says of a file is used only if that file is as it was: its size, its time of change, and a hash of some
// of its bytes. A folder that cannot be read or written costs time, and is no error.
//
// The file, in the byte order of the machine:
//
//   16 bytes   "lockstep kept 1\n"                          do not change
//    8         XXH3 of all that follows
//              number of files; for each: size, time of change, hash, and the bytes about it; the bytes about
//              all of them
//
// Numbers are those of IndexWriter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A folder in which readers keep what they find, if this thread makes them while the object lives. One at a
/// time.
class IndexFolder {
 public:
  /// `path` empty: nothing is kept. `writes`: otherwise the folder is only read. The folder above exists.
  IndexFolder(std::string path, bool writes);
  ~IndexFolder();
  IndexFolder(const IndexFolder&) = delete;
  IndexFolder& operator=(const IndexFolder&) = delete;

  /// The one that lives; null: none.
  static IndexFolder* current();
  const std::string& path() const { return path_; }
  bool writes() const { return writes_; }
  /// Removes the files of the folder that no reader used since this object was made, such as those of data
  /// that lie elsewhere now. Nothing if it does not write.
  void remove_unused() const;

 private:
  friend class KeptIndex;
  const std::string path_;
  const bool writes_;
  std::vector<std::string> used_;  ///< names of files
};

/// Numbers in few bytes, and texts.
class IndexWriter {
 public:
  void number(std::int64_t value);
  void text(std::string_view value);
  /// Writes numbers; ascending ones take fewer bytes.
  void numbers(const std::vector<std::int64_t>& values);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what IndexWriter wrote. Beyond the end, numbers are 0 and texts empty, and good() is false.
class IndexReader {
 public:
  explicit IndexReader(std::string_view bytes) : rest_(bytes) {}
  std::int64_t number();
  std::string text();
  std::vector<std::int64_t> numbers();
  bool good() const { return good_; }
  /// All was read, and nothing was missing.
  bool ended() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

class KeptIndex {
 public:
  /// `kind`: "jsonl". `options`: all else on which what is kept depends. Looks at the files. Nothing is kept
  /// without an IndexFolder, or if the files have less than 1 MiB.
  KeptIndex(std::string_view kind, std::string_view options, const std::vector<std::string>& paths);

  /// What was kept of file i, or of all files; nothing if one of these has changed.
  std::optional<std::string_view> of_file(std::size_t i) const;
  std::optional<std::string_view> of_all() const;
  /// Something was kept, but a file has changed: its path. Empty: none.
  const std::string& changed() const { return changed_; }

  /// Threads may call it for different files.
  void set_file(std::size_t i, std::string bytes) {
    if (!file_.empty()) files_[i].now = std::move(bytes);
  }
  void set_all(std::string bytes) { all_now_ = std::move(bytes); }
  /// Writes what was set, and what is kept of the other files, unless nothing was set or a file has changed
  /// meanwhile.
  void keep();

 private:
  struct State {
    std::int64_t bytes = 0, changed = 0, hash = 0;
    bool operator==(const State&) const = default;
  };
  struct File {
    State state;
    bool same = false;  ///< as when it was kept
    std::string kept;
    std::optional<std::string> now;
  };
  static std::optional<State> state_of(const std::string& path);
  void read();

  std::vector<std::string> paths_;
  std::vector<File> files_;
  std::string all_kept_, changed_;
  std::optional<std::string> all_now_;
  std::string file_;  ///< of the folder; empty: nothing is kept
  bool writes_ = false, has_all_ = false;
};

}  // namespace lockstep
