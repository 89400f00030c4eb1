// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_handle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "io/file_descriptor.h"
#include "io/hdf5_advice.h"
#include "io/hdf5_type.h"
#include "io/staged_files.h"

namespace lockstep {

namespace {

std::recursive_mutex& process_wide_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
#define LOCKSTEP_HDF5_HAS_FILE_LOCKING 1
#else
#define LOCKSTEP_HDF5_HAS_FILE_LOCKING 0
#endif

/// Older libraries read the setting that disables file locks only from the environment, before their first
/// use.
void prepare_library() {
#if !LOCKSTEP_HDF5_HAS_FILE_LOCKING
  static const bool done = (::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0), true);
  (void)done;
#endif
}

/// The fields of a 16-bit floating-point type; the sign is bit 15.
struct HalfLayout {
  std::size_t exponent_bits, fraction_bits, bias;
};

HalfLayout half_layout(DType type) {
  return type == DType::f16 ? HalfLayout{5, 10, 15} : HalfLayout{8, 7, 127};
}

/// True for float16 and bfloat16, in either byte order.
bool is_half(hid_t type, DType& result) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, fraction = 0, fraction_bits = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits) < 0) return false;
  for (const DType half : {DType::f16, DType::bf16}) {
    const HalfLayout layout = half_layout(half);
    if (sign != 15 || fraction != 0 || fraction_bits != layout.fraction_bits ||
        exponent != layout.fraction_bits || exponent_bits != layout.exponent_bits ||
        H5Tget_ebias(type) != layout.bias || H5Tget_offset(type) != 0)
      continue;
    result = half;
    return true;
  }
  return false;
}

herr_t keep_innermost(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc != nullptr && error->desc[0] != '\0') *static_cast<std::string*>(text) = error->desc;
  return 0;
}

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(process_wide_mutex()) {
  prepare_library();
  // In thread-safe builds this setting is per thread, so it is set each time.
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Lock::~Hdf5Lock() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

std::string hdf5_error_text() {
  std::string text;
  // The last function of the downward walk is the innermost, whose text has the actual reason.
  if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &text) < 0 || text.empty())
    text = "unknown reason";
  H5Eclear2(H5E_DEFAULT);
  return text;
}

herr_t Hdf5Handle::close() {
  if (id_ < 0) return 0;
  const Hdf5Lock lock;
  return closer_(std::exchange(id_, -1));
}

void Hdf5Handle::reset() noexcept {
  if (id_ < 0) return;
  const Hdf5Lock lock;
  if (closer_(id_) < 0) H5Eclear2(H5E_DEFAULT);
  id_ = -1;
}

Hdf5Handle hdf5_access_properties(const Hdf5Context& context) {
  Hdf5Handle access(hdf5_checked(H5Pcreate(H5P_FILE_ACCESS), context, "create access properties"), H5Pclose);
  hdf5_checked(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), context, "set the close degree");
#if LOCKSTEP_HDF5_HAS_FILE_LOCKING
  hdf5_checked(H5Pset_file_locking(access.get(), false, true), context, "disable file locking");
#endif
  return access;
}

Hdf5Handle hdf5_open_file(const std::string& path, const Hdf5Context& context) {
  const std::string opened = path_to_open(path);
  struct stat status {};
  if (::stat(opened.c_str(), &status) != 0)
    throw Error(
        context.kind, fmt::format("cannot open{}: {}", staged_note(path), std::strerror(errno)), path,
        errno == ENOENT ? "Check that the file exists and that the path is spelled right." : context.advice);
  if (!S_ISREG(status.st_mode))
    throw Error(context.kind, "is not a regular file", path, "Give the path of an HDF5 file.");
  // A file without permission is not a damaged one.
  const FileDescriptor readable(::open(opened.c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable.is_open()) throw file_error(context.kind, "open", path, errno);
  const Hdf5Handle access = hdf5_access_properties(context);
  hdf5_register_bitfields();
  Hdf5Handle file(H5Fopen(opened.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (file.get() >= 0) return file;
  const std::string reason = hdf5_error_text();
  if (context.kind == ErrorKind::data) {
    if (is_newer_hdf5(reason)) throw newer_hdf5_error(path, path, reason);
    if (const std::optional<Error> other = other_format_error(path, opened)) throw *other;
  }
  throw Error(context.kind, fmt::format("cannot open as HDF5: {}", reason), path, context.advice);
}

hid_t hdf5_memory_type(DType type) {
  switch (type) {
    case DType::f32:
      return H5T_NATIVE_FLOAT;
    case DType::f64:
      return H5T_NATIVE_DOUBLE;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return H5T_NATIVE_UINT16;
    case DType::i32:
      return H5T_NATIVE_INT32;
    case DType::i64:
      return H5T_NATIVE_INT64;
    case DType::u8:
      return H5T_NATIVE_UINT8;
    case DType::i8:
      return H5T_NATIVE_INT8;
    case DType::i16:
      return H5T_NATIVE_INT16;
  }
  LOCKSTEP_CHECK(false, "dtype {}", static_cast<int>(type));
}

hid_t hdf5_file_type(DType type) {
  switch (type) {
    case DType::f32:
      return H5T_IEEE_F32LE;
    case DType::f64:
      return H5T_IEEE_F64LE;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return H5T_STD_U16LE;
    case DType::i32:
      return H5T_STD_I32LE;
    case DType::i64:
      return H5T_STD_I64LE;
    case DType::u8:
      return H5T_STD_U8LE;
    case DType::i8:
      return H5T_STD_I8LE;
    case DType::i16:
      return H5T_STD_I16LE;
  }
  LOCKSTEP_CHECK(false, "dtype {}", static_cast<int>(type));
}

Hdf5Handle hdf5_half_type(DType type, const Hdf5Context& context) {
  LOCKSTEP_CHECK(type == DType::f16 || type == DType::bf16);
  const HalfLayout layout = half_layout(type);
  Hdf5Handle half(hdf5_checked(H5Tcopy(H5T_NATIVE_FLOAT), context, "describe a type"), H5Tclose);
  const hid_t id = half.get();
  // The size is last: a type must always have room for its fields.
  hdf5_checked(H5Tset_fields(id, 15, layout.fraction_bits, layout.exponent_bits, 0, layout.fraction_bits),
               context, "describe a type");
  hdf5_checked(H5Tset_precision(id, 16), context, "describe a type");
  hdf5_checked(H5Tset_size(id, 2), context, "describe a type");
  hdf5_checked(H5Tset_ebias(id, layout.bias), context, "describe a type");
  return half;
}

bool hdf5_dtype_of(hid_t type, DType& result) {
  const H5T_class_t type_class = H5Tget_class(type);
  const std::size_t bytes = H5Tget_size(type);
  if (type_class == H5T_FLOAT) {
    if (bytes == 2) return is_half(type, result);
    if (bytes != 4 && bytes != 8) return false;
    result = bytes == 4 ? DType::f32 : DType::f64;
    return true;
  }
  if (type_class != H5T_INTEGER) return false;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (bytes) {
    case 1:
      result = is_signed ? DType::i8 : DType::u8;
      return true;
    case 2:
      result = is_signed ? DType::i16 : DType::u16;
      return true;
    case 4:
      result = DType::i32;
      return is_signed;
    case 8:
      result = DType::i64;
      return is_signed;
    default:
      return false;
  }
}

}  // namespace lockstep
