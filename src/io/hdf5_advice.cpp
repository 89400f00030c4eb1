// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_advice.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/shell_word.h"
#include "io/hdf5_chunk.h"

namespace lockstep {

namespace {

/// Registered filters (HDF Group, "Registered Filter Plugins").
struct KnownFilter {
  int id;
  std::string_view name;
  bool in_hdf5plugin;  ///< the package of Python
};
constexpr std::array kFilters{KnownFilter{H5Z_FILTER_SZIP, "szip", false},
                              KnownFilter{305, "lzo", false},
                              KnownFilter{307, "bzip2", true},
                              KnownFilter{32000, "lzf", false},
                              KnownFilter{32001, "blosc", true},
                              KnownFilter{32003, "snappy", false},
                              KnownFilter{32004, "lz4", true},
                              KnownFilter{32008, "bitshuffle", true},
                              KnownFilter{32013, "zfp", true},
                              KnownFilter{32014, "fpzip", false},
                              KnownFilter{32015, "zstd", true},
                              KnownFilter{32017, "sz", true},
                              KnownFilter{32018, "fcidecomp", true},
                              KnownFilter{32024, "sz3", true},
                              KnownFilter{32026, "blosc2", true},
                              KnownFilter{32028, "sperr", true}};
constexpr int kLzf = 32000;

const KnownFilter* known_filter(int id) {
  const auto* const found = std::ranges::find(kFilters, id, &KnownFilter::id);
  return found == kFilters.end() ? nullptr : found;
}

std::string copy_of(const std::string& path) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / ("copy-of-" + whole.filename().string())).string();
}

/// A command that writes all datasets of a file anew, by gzip and as HDF5 1.10 reads them. In double quotes
/// for the shell.
std::string copy_by_h5py(const std::string& path) {
  return fmt::format(
      "python3 -c \"import h5py; a = h5py.File('{}'); b = h5py.File('{}', 'w', libver=('earliest', 'v110')); "
      "f = lambda d: {{k: v for k, v in d.attrs.items() if 'LIST' not in k}}; b.attrs.update(f(a)); "
      "a.visititems(lambda n, d: b.create_dataset(n, data=d[()], compression='gzip' if d.chunks else "
      "None).attrs.update(f(d)) if isinstance(d, h5py.Dataset) else None)\"",
      name_in_quotes(path), name_in_quotes(copy_of(path)));
}

/// A format that people take for HDF5, or find under its file names.
struct OtherFormat {
  /// In the advice, {0} is the file and {1} its copy, as words of the shell; {2} and {3} are
  /// for quotes.
  std::string_view start, what, advice;
};
using namespace std::string_view_literals;
constexpr std::string_view kFromNetcdf3 =
    "Convert it: nccopy -k nc4 {0} {1} (or ncks -4 {0} {1}, or nc3tonc4 {0} {1} of Python's netCDF4)";
constexpr std::array kFormats{
    OtherFormat{"CDF\x01"sv, "is a netCDF-3 file (classic), not netCDF-4", kFromNetcdf3},
    OtherFormat{"CDF\x02"sv, "is a netCDF-3 file (64-bit offset), not netCDF-4", kFromNetcdf3},
    OtherFormat{"CDF\x05"sv, "is a netCDF-3 file (64-bit data), not netCDF-4", kFromNetcdf3},
    OtherFormat{"\x0E\x03\x13\x01"sv, "is an HDF4 file, not HDF5",
                "Convert it: h4toh5 {0} {1} (or, with the netCDF of HDF4: nccopy -k nc4 {0} {1})"},
    OtherFormat{
        "MATLAB 5.0 MAT-file"sv, "is a MATLAB file of version 5 (up to 7), not HDF5",
        "Save it in MATLAB as HDF5: load('{2}'); save('{3}', '-v7.3'). Or make it a file for format: npy: "
        "python3 -c \"import numpy, scipy.io; numpy.savez('{3}.npz', **{{k: v for k, v in "
        "scipy.io.loadmat('{2}').items() if k[0] != '_'}})\""},
    OtherFormat{"GRIB"sv, "is a GRIB file, not netCDF-4",
                "Convert it: cdo -f nc4 copy {0} {1} (or: grib_to_netcdf -k 4 -o {1} {0})"},
    OtherFormat{"\x1F\x8B"sv, "is compressed as a whole by gzip", "Unpack it: gunzip {0}"},
    OtherFormat{"BZh"sv, "is compressed as a whole by bzip2", "Unpack it: bunzip2 {0}"},
    OtherFormat{"\xFD"
                "7zXZ"sv,
                "is compressed as a whole by xz", "Unpack it: unxz {0}"},
    OtherFormat{"PK\x03\x04"sv, "is a ZIP archive",
                "Unpack it; a file of numpy.savez is read by format: npy."},
    OtherFormat{"\x93NUMPY"sv, "is a NumPy file", "Write format: npy."},
    OtherFormat{"version https://git-lfs"sv, "is a pointer of Git LFS, not the data",
                "Fetch the data in its repository: git lfs pull"},
    OtherFormat{"<"sv, "is a page (HTML or XML), not HDF5: perhaps the message of a server",
                "Download the file again; look at it with: head {0}"}};

}  // namespace

std::optional<Hdf5Filter> missing_hdf5_filter(hid_t creation) {
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t num_values = 0;
    std::array<char, 256> text{};
    const H5Z_filter_t id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &num_values, nullptr,
                                           text.size() - 1, text.data(), &config);
    const bool is_there = id >= 0 && H5Zfilter_avail(id) > 0;
    H5Eclear2(H5E_DEFAULT);
    if (id < 0) continue;
    if (is_there && (H5Zget_filter_info(id, &config) < 0 || (config & H5Z_FILTER_CONFIG_DECODE_ENABLED) != 0))
      continue;
    const KnownFilter* const known = known_filter(id);
    return Hdf5Filter{id, static_cast<unsigned>(i),
                      known != nullptr       ? std::string(known->name)
                      : text.front() != '\0' ? std::string(text.data())
                                             : std::string("unknown")};
  }
  return std::nullopt;
}

Error missing_filter_error(const Hdf5Filter& filter, const std::string& path, const std::string& where) {
  const KnownFilter* const known = known_filter(filter.id);
  const std::string plugin = known != nullptr && known->in_hdf5plugin
                                 ? "name the folder of its plugin in HDF5_PLUGIN_PATH (Python's package "
                                   "hdf5plugin has it: python3 -c "
                                   "\"import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)\")"
                                 : "name the folder of its plugin in HDF5_PLUGIN_PATH";
  const std::string copy =
      filter.id == kLzf
          ? "or write a copy with gzip by h5py, which has this filter: " + copy_by_h5py(path)
          : fmt::format("or write a copy with gzip where the filter is: h5repack -f GZIP=4 {} {}",
                        shell_word(path), shell_word(copy_of(path)));
  return {ErrorKind::data,
          fmt::format("its chunks are compressed by the filter {} (number {}), which HDF5 does not find here",
                      filter.name, filter.id),
          where, fmt::format("Either {}, {}", plugin, copy)};
}

bool is_newer_hdf5(const std::string& reason) {
  return reason.find("bad version number") != reason.npos ||
         reason.find("bad superblock version") != reason.npos ||
         reason.find("unknown datatype class") != reason.npos;
}

Error newer_hdf5_error(const std::string& path, const std::string& where, const std::string& reason) {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return {
      ErrorKind::data,
      fmt::format("is stored in a form that HDF5 {}.{}.{} here does not know ({}): a newer HDF5 has "
                  "written it, or it is damaged",
                  major, minor, release, reason),
      where,
      fmt::format("Where the newer HDF5 is, write a copy: h5repack --low=0 --high=2 {} {}, or by h5py: {} "
                  "Writers do so at once with libver=('earliest', 'v110') in h5py.",
                  shell_word(path), shell_word(copy_of(path)), copy_by_h5py(path))};
}

std::optional<Error> other_format_error(const std::string& path, const std::string& opened) {
  std::ifstream file(opened, std::ios::binary);
  std::array<char, 32> start{};
  file.read(start.data(), start.size());
  const std::string_view found(start.data(), static_cast<std::size_t>(file.gcount()));
  for (const OtherFormat& format : kFormats)
    if (found.starts_with(format.start))
      return Error(ErrorKind::data, std::string(format.what), path,
                   fmt::format(fmt::runtime(format.advice), shell_word(path), shell_word(copy_of(path)),
                               name_in_quotes(path), name_in_quotes(copy_of(path))));
  return std::nullopt;
}

}  // namespace lockstep
