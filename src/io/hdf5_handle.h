// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: the one place that deals with HDF5's handles, lock and error texts.
//
// HDF5 is not safe between threads (and Debian's build need not be), so every use of it happens under one
// process-wide Hdf5Lock, closing of handles included. HDF5's own printing of errors is off; hdf5_checked()
// turns a failed call into an Error with HDF5's innermost reason.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"

namespace lockstep {

/// Holds the process-wide lock (recursive) and keeps HDF5 from printing.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// HDF5's description of the failure that just happened, then forgets it; "unknown reason" if it gives none.
std::string hdf5_error_text();

/// What failed calls report: kind and place.
struct Hdf5Context {
  ErrorKind kind;
  std::string where;
  std::string advice;
};

/// Returns `result`, or throws when it is negative: "cannot <action>: <HDF5's reason>".
template <typename Result>
Result hdf5_checked(Result result, const Hdf5Context& context, std::string_view action) {
  if (result < 0)
    throw Error(context.kind, fmt::format("cannot {}: {}", action, hdf5_error_text()), context.where,
                context.advice);
  return result;
}

/// An owned HDF5 identifier. close() reports failure; the destructor, which may only tidy up, does not.
class Hdf5Handle {
 public:
  using Closer = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  ~Hdf5Handle() { reset(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), closer_(std::exchange(other.closer_, nullptr)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, -1);
      closer_ = std::exchange(other.closer_, nullptr);
    }
    return *this;
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;

  hid_t get() const { return id_; }
  herr_t close();

 private:
  void reset() noexcept;
  hid_t id_ = -1;
  Closer closer_ = nullptr;
};

/// Access properties of every file we open: no file locks (they break on NFS and Lustre), and closing a file
/// closes everything in it.
Hdf5Handle hdf5_access_properties(const Hdf5Context& context);
/// Opens an existing file for reading, without a file lock.
Hdf5Handle hdf5_open_file(const std::string& path, const Hdf5Context& context);

/// The type in memory for `type`; bf16 and f16 are their 16 bits as u16.
hid_t hdf5_memory_type(DType type);
/// The type in files: little-endian.
hid_t hdf5_file_type(DType type);
/// The DType of a number type in a file (either byte order); false if it is not one of ours.
bool hdf5_dtype_of(hid_t type, DType& result);

}  // namespace lockstep
