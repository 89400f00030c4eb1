// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/run_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep {

int open_run_file(const std::string& path, int flags, ErrorKind kind) {
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | (reads ? 0 : O_NOFOLLOW), 0666);
  int code = errno;
  struct stat status {};
  if (descriptor < 0 && code == ELOOP)
    throw Error(kind, "is a symbolic link, which is not followed", path,
                "Lockstep changes no file outside of its run directory: remove the link.");
  const bool known = descriptor >= 0 ? ::fstat(descriptor, &status) == 0 : ::stat(path.c_str(), &status) == 0;
  if (known && !S_ISREG(status.st_mode)) {
    if (descriptor >= 0) ::close(descriptor);
    throw Error(kind, S_ISDIR(status.st_mode) ? "is a folder, not a file" : "is not a regular file", path,
                "Remove it, or choose another run directory.");
  }
  errno = code;
  return descriptor;
}

}  // namespace lockstep
