// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "io/fault_points.h"
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

namespace lockstep {

namespace {

/// Limits the time until a cancelled writer ends.
constexpr std::size_t kLargestWrite = std::size_t{64} << 20;
/// The operating system collects smaller writes.
constexpr std::size_t kWorthTelling = std::size_t{1} << 20;

struct DriverInfo {
  Hdf5Output* output;
};

struct OpenFile {
  H5FD_t base;  // HDF5's part; must be first
  Hdf5Output* output;
  haddr_t end_of_space;
};

OpenFile* ours(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* ours(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) OpenFile();
  if (file == nullptr) return nullptr;
  file->output = info->output;
  return &file->base;
}

herr_t close_file(H5FD_t* file) {
  delete ours(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t get_end_of_space(const H5FD_t* file, H5FD_mem_t) { return ours(file)->end_of_space; }

herr_t set_end_of_space(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  ours(file)->end_of_space = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t) { return ours(file)->output->end_bytes; }

/// Bytes that do not exist or were not written read as zero.
herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* to) {
  Hdf5Output& output = *ours(file)->output;
  auto* position = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(output.descriptor, position, bytes, static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && output.error == 0) output.error = errno;
    if (got <= 0) break;
    position += got;
    address += static_cast<haddr_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  std::memset(position, 0, bytes);
  return 0;
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, const void* from) {
  Hdf5Output& output = *ours(file)->output;
  output.end_bytes = std::max<std::uint64_t>(output.end_bytes, address + bytes);
  const auto* position = static_cast<const char*>(from);
  while (bytes > 0 && output.error == 0) {
    if (output.cancelled != nullptr && *output.cancelled) {
      output.error = ECANCELED;
      break;
    }
    const std::size_t piece = std::min(bytes, kLargestWrite);
    const ssize_t written = faulty_pwrite(output.descriptor, position, piece, static_cast<off_t>(address));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      output.error = written < 0 ? errno : EIO;
      break;
    }
#ifdef SYNC_FILE_RANGE_WRITE
    // Lets the disk start now, while the next tensor is hashed. fsync() at the end waits and reports errors.
    if (static_cast<std::size_t>(written) >= kWorthTelling)
      ::sync_file_range(output.descriptor, static_cast<off_t>(address), written, SYNC_FILE_RANGE_WRITE);
#endif
    position += written;
    address += static_cast<haddr_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

/// Sets the file's length to the space that HDF5 has allocated.
herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  OpenFile& open = *ours(file);
  Hdf5Output& output = *open.output;
  if (open.end_of_space == output.end_bytes) return 0;
  output.end_bytes = open.end_of_space;
  if (output.error == 0 && ::ftruncate(output.descriptor, static_cast<off_t>(open.end_of_space)) != 0)
    output.error = errno;
  return 0;
}

H5FD_class_t make_class() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  constexpr int kUnregisteredValue = 300;  // 256 to 511 are for drivers that are not distributed
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(kUnregisteredValue);
#endif
  driver.name = "lockstep_output";
  driver.maxaddr = (haddr_t{1} << 63) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = get_end_of_space;
  driver.set_eoa = set_end_of_space;
  driver.get_eof = get_end_of_file;
  driver.read = read_bytes;
  driver.write = write_bytes;
  driver.truncate = truncate_file;
  constexpr H5FD_mem_t kSeparate[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kSeparate), std::end(kSeparate), driver.fl_map);
  return driver;
}

}  // namespace

void hdf5_write_to(const Hdf5Handle& access, Hdf5Output& output, const Hdf5Context& context) {
  const Hdf5Lock lock;
  static const H5FD_class_t driver = make_class();
  static const hid_t driver_id = H5FDregister(&driver);  // for the life of the process
  hdf5_checked(driver_id, context, "register the file driver");
  const DriverInfo info{&output};
  hdf5_checked(H5Pset_driver(access.get(), driver_id, &info), context, "choose the file driver");
}

}  // namespace lockstep
