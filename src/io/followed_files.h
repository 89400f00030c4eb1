// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A file of another program that takes values from further files: which of those may be opened, and which
// were. A file from elsewhere must not copy local files into what is made of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep {

class FollowedFiles {
 public:
  /// `anywhere`: the person who gave `path` permits files outside of its folder.
  FollowedFiles(const std::string& path, bool anywhere);

  /// To be called before `file` is opened. Throws Error(data) at `where` for a file outside of the folder,
  /// links resolved, unless all are permitted, and for what is no regular file. `role`: "the external link".
  /// A file that does not exist is left to whoever opens it.
  void open(const std::string& file, std::string_view role, const std::string& where);

  /// Paths without links, and what was found there.
  const std::map<std::string, std::string>& all() const { return files_; }
  /// The size of all of them.
  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::string own_, folder_;
  const bool anywhere_;
  std::map<std::string, std::string> files_;  ///< role by path
  std::uint64_t bytes_ = 0;
};

}  // namespace lockstep
