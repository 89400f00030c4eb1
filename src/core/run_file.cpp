// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/run_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace lockstep {

namespace {

Error link_error(ErrorKind kind, const std::string& path) {
  return Error(kind, "is a symbolic link, which is not followed", path,
               "Lockstep changes no file outside of its run directory: remove the link.");
}

}  // namespace

int open_run_file(const std::string& path, int flags, ErrorKind kind) {
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | (reads ? 0 : O_NOFOLLOW), 0666);
  int code = errno;
  struct stat status {};
  if (descriptor < 0 && code == ELOOP) throw link_error(kind, path);
  const bool known = descriptor >= 0 ? ::fstat(descriptor, &status) == 0 : ::stat(path.c_str(), &status) == 0;
  if (known && !S_ISREG(status.st_mode)) {
    if (descriptor >= 0) ::close(descriptor);
    throw Error(kind, S_ISDIR(status.st_mode) ? "is a folder, not a file" : "is not a regular file", path,
                "Remove it, or choose another run directory.");
  }
  errno = code;
  return descriptor;
}

std::string make_run_folder(const std::string& run_dir, const std::string& name, ErrorKind kind) {
  std::string path = run_dir;
  for (const std::filesystem::path& part : std::filesystem::path(name)) {
    path += '/' + part.string();
    if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
      throw Error(kind, std::string("cannot make the folder: ") + std::strerror(errno), path,
                  "Check the permissions of the run directory, and the space on its disk.");
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0)
      throw Error(kind, std::string("cannot look at the folder: ") + std::strerror(errno), path,
                  "Was the run directory removed?");
    if (S_ISLNK(status.st_mode)) throw link_error(kind, path);
    if (!S_ISDIR(status.st_mode))
      throw Error(kind, "is a file, where a folder is wanted", path,
                  "Remove it, or choose another run directory.");
  }
  return path;
}

}  // namespace lockstep
