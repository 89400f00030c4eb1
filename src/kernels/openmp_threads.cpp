// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/openmp_threads.h"

#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace lockstep {

namespace {

struct Runtime {
  void (*set_num_threads)(int) = nullptr;
  int (*max_threads)() = nullptr;
};

// Among the libraries that oneDNN itself is linked with: a program may have two OpenMP runtimes, and one that
// has loaded Lockstep with RTLD_LOCAL (Python's ctypes) does not see them among its own symbols.
Runtime find_runtime() {
  void* from = RTLD_DEFAULT;
  Dl_info of_library{};
  if (dladdr(reinterpret_cast<void*>(&dnnl_version), &of_library) != 0 && of_library.dli_fname != nullptr)
    if (void* const library = dlopen(of_library.dli_fname, RTLD_LAZY | RTLD_NOLOAD); library != nullptr)
      from = library;  // stays open, as it was
  Runtime runtime;
  for (void* const place : {from, static_cast<void*>(RTLD_DEFAULT)}) {
    runtime.set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(place, "omp_set_num_threads"));
    runtime.max_threads = reinterpret_cast<int (*)()>(dlsym(place, "omp_get_max_threads"));
    if (runtime.set_num_threads != nullptr && runtime.max_threads != nullptr) return runtime;
  }
  return {};  // oneDNN is sequential, or has a thread pool of its own
}

const Runtime& runtime() {
  static const Runtime found = find_runtime();
  return found;
}

}  // namespace

void use_one_openmp_thread() {
  if (runtime().set_num_threads != nullptr) runtime().set_num_threads(1);
}

OneOpenMpThread::OneOpenMpThread() {
  if (runtime().max_threads == nullptr) return;
  before_ = runtime().max_threads();
  if (before_ != 1) runtime().set_num_threads(1);
}

OneOpenMpThread::~OneOpenMpThread() {
  if (before_ > 0 && owner_ == std::this_thread::get_id()) runtime().set_num_threads(before_);
}

}  // namespace lockstep
