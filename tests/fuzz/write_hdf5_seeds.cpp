// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// write_hdf5_seeds FOLDER: good HDF5 files for data_fuzz.py, of each kind of storage, and crashing.hdf5 for
// crashing_file_test.py. Each has 32 samples of 6 features in train/x and class numbers below 3 in
// train/label.
#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "io/hdf5_handle.h"

namespace lockstep {
namespace {

constexpr hsize_t kRows = 32, kColumns = 6;
constexpr H5Z_filter_t kCrashingFilter = 402;  // 256 to 511 are for tests
const Hdf5Context kContext{ErrorKind::bug, "write_hdf5_seeds", ""};

template <typename Result>
Result checked(Result result) {
  return hdf5_checked(result, kContext, "write a seed");
}

struct Seed {
  const char* name;
  bool newest_format;
  hid_t feature_type;
  std::function<void(hid_t)> features, labels;  ///< set creation properties
};

void chunks(hid_t creation, hsize_t rows, hsize_t columns) {
  const std::array<hsize_t, 2> chunk{rows, columns};
  checked(H5Pset_chunk(creation, columns == 0 ? 1 : 2, chunk.data()));
}

template <typename T>
void add(hid_t file, const char* name, hid_t file_type, hid_t memory_type, bool growing,
         const std::vector<hsize_t>& extents, const std::function<void(hid_t)>& set,
         const std::vector<T>& values) {
  const Hdf5Handle links(checked(H5Pcreate(H5P_LINK_CREATE)), H5Pclose),
      creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  checked(H5Pset_create_intermediate_group(links.get(), 1));
  if (set) set(creation.get());
  std::vector<hsize_t> most = extents;
  if (growing) most[0] = H5S_UNLIMITED;
  const Hdf5Handle space(
      checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), most.data())), H5Sclose);
  const Hdf5Handle data(
      checked(H5Dcreate2(file, name, file_type, space.get(), links.get(), creation.get(), H5P_DEFAULT)),
      H5Dclose);
  if (!values.empty())
    checked(H5Dwrite(data.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

std::vector<float> features() {
  std::vector<float> values;
  for (hsize_t i = 0; i < kRows * kColumns; ++i) values.push_back(static_cast<float>(i * 7 % 16));
  return values;
}
std::vector<std::int32_t> labels() {
  std::vector<std::int32_t> values;
  for (hsize_t i = 0; i < kRows; ++i) values.push_back(static_cast<std::int32_t>(i % 3));
  return values;
}

Hdf5Handle create(const std::string& path, bool newest_format) {
  const Hdf5Handle access(checked(H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
  if (newest_format) checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
  return {checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get())), H5Fclose};
}

void write(const std::string& folder, const Seed& seed, bool growing) {
  const Hdf5Handle file = create(folder + "/" + seed.name + ".h5", seed.newest_format);
  add<float>(file.get(), "train/x", seed.feature_type, H5T_NATIVE_FLOAT, growing, {kRows, kColumns},
             seed.features, features());
  add<std::int32_t>(file.get(), "train/label", H5T_STD_I32LE, H5T_NATIVE_INT32, false, {kRows}, seed.labels,
                    labels());
}

/// Two halves of another seed's rows.
void write_virtual(const std::string& folder) {
  const Hdf5Handle file = create(folder + "/virtual.h5", true);
  const std::array<hsize_t, 2> all{kRows, kColumns}, half{kRows / 2, kColumns};
  const Hdf5Handle space(checked(H5Screate_simple(2, all.data(), nullptr)), H5Sclose),
      source(checked(H5Screate_simple(2, all.data(), nullptr)), H5Sclose);
  add<float>(file.get(), "train/x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, false, {kRows, kColumns},
             [&](hid_t creation) {
               for (const hsize_t first : {hsize_t{0}, kRows / 2}) {
                 const std::array<hsize_t, 2> start{first, 0};
                 for (const Hdf5Handle* selected : {&space, &source})
                   checked(H5Sselect_hyperslab(selected->get(), H5S_SELECT_SET, start.data(), nullptr,
                                               half.data(), nullptr));
                 checked(H5Pset_virtual(creation, space.get(), "old_chunked.h5", "train/x", source.get()));
               }
             },
             {});
  add<std::int32_t>(file.get(), "train/label", H5T_STD_I32LE, H5T_NATIVE_INT32, false, {kRows}, {}, labels());
}

std::size_t change_nothing(unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) {
  return bytes;
}

/// Its chunks passed through the filter that crashing_filter.cpp implements as a plugin.
void write_crashing(const std::string& folder) {
  const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, kCrashingFilter, 1,       1,
                               "crash",          nullptr,         nullptr, change_nothing};
  checked(H5Zregister(&filter));
  const auto filtered = [](hid_t creation) {
    chunks(creation, 8, kColumns);
    checked(H5Pset_filter(creation, kCrashingFilter, H5Z_FLAG_MANDATORY, 0, nullptr));
  };
  const Hdf5Handle file = create(folder + "/crashing.hdf5", false);
  add<float>(file.get(), "train/x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, false, {kRows, kColumns}, filtered,
             features());
  add<std::int32_t>(file.get(), "train/label", H5T_STD_I32LE, H5T_NATIVE_INT32, false, {kRows}, {}, labels());
}

void write_all(const std::string& folder) {
  const Hdf5Lock lock;
  const Hdf5Handle half = hdf5_half_type(DType::f16, kContext);
  const auto compressed = [](hid_t creation) {
    chunks(creation, 5, kColumns);
    checked(H5Pset_shuffle(creation));
    checked(H5Pset_deflate(creation, 4));
  };
  const auto packed = [](hid_t creation) {
    chunks(creation, 8, 4);
    checked(H5Pset_scaleoffset(creation, H5Z_SO_INT, 0));
    checked(H5Pset_fletcher32(creation));
  };
  const auto bits = [](hid_t creation) {
    chunks(creation, 8, 0);
    checked(H5Pset_nbit(creation));
  };
  const auto compact = [](hid_t creation) { checked(H5Pset_layout(creation, H5D_COMPACT)); };
  const auto small = [](hid_t creation) { chunks(creation, 3, 2); };
  write(folder, {"old_contiguous", false, H5T_IEEE_F64BE, {}, {}}, false);
  write(folder, {"old_chunked", false, H5T_IEEE_F32LE, compressed, compact}, true);
  write(folder, {"old_packed", false, H5T_STD_I16LE, packed, bits}, false);
  write(folder, {"new_half", true, half.get(), {}, compact}, false);
  write(folder, {"new_fixed", true, H5T_IEEE_F32LE, small, {}}, false);
  write(folder, {"new_growing", true, H5T_STD_U8LE, compressed, bits}, true);
  write_virtual(folder);
  write_crashing(folder);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    lockstep::write_all(argc == 2 ? argv[1] : ".");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
