// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An HDF5 filter plugin that crashes when it reads, as the library itself does on some damaged files.
#include <hdf5.h>

#include <csignal>

namespace {

std::size_t crash(unsigned flags, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) {
  if ((flags & H5Z_FLAG_REVERSE) != 0) std::raise(SIGSEGV);
  return bytes;
}

const H5Z_class2_t kFilter = {H5Z_CLASS_T_VERS, 402, 1, 1, "crash", nullptr, nullptr, crash};

}  // namespace

// The interface of plugins (H5PLextern.h): 0 stands for a filter.
extern "C" __attribute__((visibility("default"))) int H5PLget_plugin_type() { return 0; }
extern "C" __attribute__((visibility("default"))) const void* H5PLget_plugin_info() { return &kFilter; }
