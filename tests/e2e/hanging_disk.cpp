// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: a disk that does not answer. While the file $HANG_WHILE exists, write() and fdatasync() of
// files whose path contains one of the words of $HANG_NAMES (separated by commas) do not return.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

bool is_hanging(int descriptor) {
  const char* const flag = std::getenv("HANG_WHILE");
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
  while (is_hanging(descriptor)) ::usleep(10000);
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* data, std::size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  wait_for_the_disk(descriptor);
  return real(descriptor, data, bytes);
}

extern "C" int fdatasync(int descriptor) {
  static const auto real = next<int (*)(int)>("fdatasync");
  wait_for_the_disk(descriptor);
  return real(descriptor);
}
