// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: a disk that does not answer, or is full, for files whose path contains one of the words of
// $HANG_NAMES (separated by commas). While the file $HANG_WHILE exists, write() and fdatasync() do not
// return. While $FULL_WHILE exists, write() takes half of the bytes at a time, and at the last ones the disk
// is full.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr std::size_t kLastBytes = 16;

/// The file that the variable names exists, and the descriptor is of such a file.
bool is_while(const char* variable, int descriptor) {
  const char* const flag = std::getenv(variable);
  const char* const names = std::getenv("HANG_NAMES");
  if (flag == nullptr || names == nullptr || ::access(flag, F_OK) != 0) return false;
  char path[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (::readlink(link.c_str(), path, sizeof path - 1) < 0) return false;
  for (const char* name = names; *name != '\0';) {
    const std::size_t length = std::strcspn(name, ",");
    if (std::strstr(path, std::string(name, length).c_str()) != nullptr) return true;
    name += length + (name[length] == ',' ? 1 : 0);
  }
  return false;
}

void wait_for_the_disk(int descriptor) {
  while (is_while("HANG_WHILE", descriptor)) ::usleep(10000);
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* data, std::size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  wait_for_the_disk(descriptor);
  if (is_while("FULL_WHILE", descriptor)) {
    if (bytes > kLastBytes) return real(descriptor, data, bytes / 2);
    errno = ENOSPC;
    return -1;
  }
  return real(descriptor, data, bytes);
}

extern "C" int fdatasync(int descriptor) {
  static const auto real = next<int (*)(int)>("fdatasync");
  wait_for_the_disk(descriptor);
  return real(descriptor);
}
