// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: all handling of HDF5's identifiers, lock and error texts.
//
// HDF5 is not thread-safe (Debian's build need not be). Every use of it, including the closing of handles,
// therefore happens under one process-wide Hdf5Lock. HDF5's own printing of errors is off meanwhile;
// hdf5_checked() turns a failed call into an Error with HDF5's innermost reason.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"

namespace lockstep {

/// Holds the process-wide recursive lock, and turns HDF5's printing of errors off meanwhile. In a program
/// that uses HDF5 itself, printing is afterwards as the program has set it.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// Returns HDF5's description of the last failure and clears it; "unknown reason" if there is none.
std::string hdf5_error_text();

/// Kind, place and advice for the errors of failed calls.
struct Hdf5Context {
  ErrorKind kind;
  std::string where;
  std::string advice;
};

/// Returns `result`. If it is negative, throws "cannot <action>: <HDF5's reason>".
template <typename Result>
Result hdf5_checked(Result result, const Hdf5Context& context, std::string_view action) {
  if (result < 0)
    throw Error(context.kind, fmt::format("cannot {}: {}", action, hdf5_error_text()), context.where,
                context.advice);
  return result;
}

/// An owned HDF5 identifier. close() reports a failure; the destructor ignores it.
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

/// Access properties for all files: no file locks (they fail on NFS and Lustre), and closing a file closes
/// everything in it.
Hdf5Handle hdf5_access_properties(const Hdf5Context& context);
/// Opens an existing file for reading, without a file lock.
Hdf5Handle hdf5_open_file(const std::string& path, const Hdf5Context& context);

/// The HDF5 type of `type` in memory; bf16 and f16 are stored as u16.
hid_t hdf5_memory_type(DType type);
/// The HDF5 type of `type` in files: little-endian.
hid_t hdf5_file_type(DType type);
/// A floating-point type in memory for f16 or bf16. Data sets have it; checkpoints store these types as u16.
Hdf5Handle hdf5_half_type(DType type, const Hdf5Context& context);
/// Sets `result` to the DType of a number type in a file (either byte order). Returns false for other types.
bool hdf5_dtype_of(hid_t type, DType& result);

}  // namespace lockstep
