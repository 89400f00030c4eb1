// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files for the tests of the reader hdf5. A header of test programs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/hdf5_handle.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Extents = std::vector<hsize_t>;

constexpr H5Z_filter_t kCountingFilter = 400;  // 256 to 511 are for tests
int chunks_read = 0;

std::size_t count_chunk(unsigned flags, std::size_t, const unsigned*, std::size_t bytes, std::size_t*,
                        void**) {
  if ((flags & H5Z_FLAG_REVERSE) != 0) ++chunks_read;
  return bytes;
}

class Hdf5ReaderTest : public FolderTest {
 protected:
  /// Writes a dataset to data.h5 and creates the file if it does not exist. Without chunk extents the layout
  /// is contiguous.
  template <typename T>
  void add(const std::string& name, hid_t file_type, const Extents& extents, const std::vector<T>& values,
           const Extents& chunk = {}, bool compressed = false, bool counted = false,
           const std::vector<herr_t (*)(hid_t)>& filters = {}) const {
    const Hdf5Lock lock;
    const Hdf5Context context{ErrorKind::bug, name, ""};
    const std::string file_name = path("data.h5");
    const Hdf5Handle file(
        hdf5_checked(std::filesystem::exists(file_name)
                         ? H5Fopen(file_name.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                         : H5Fcreate(file_name.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT),
                     context, "open"),
        H5Fclose);
    const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose),
        creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    hdf5_checked(H5Pset_create_intermediate_group(links.get(), 1), context, "set");
    if (!chunk.empty())
      hdf5_checked(H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()), context,
                   "chunk");
    if (compressed) hdf5_checked(H5Pset_shuffle(creation.get()), context, "shuffle");
    if (compressed) hdf5_checked(H5Pset_deflate(creation.get(), 4), context, "deflate");
    for (const auto set_filter : filters) hdf5_checked(set_filter(creation.get()), context, "filter");
    if (counted) {
      const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, kCountingFilter, 1,       1,
                                   "count",          nullptr,         nullptr, count_chunk};
      hdf5_checked(H5Zregister(&filter), context, "register");
      hdf5_checked(H5Pset_filter(creation.get(), kCountingFilter, H5Z_FLAG_MANDATORY, 0, nullptr), context,
                   "filter");
    }
    const Hdf5Handle space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                           H5Sclose);
    const Hdf5Handle data(hdf5_checked(H5Dcreate2(file.get(), name.c_str(), file_type, space.get(),
                                                  links.get(), creation.get(), H5P_DEFAULT),
                                       context, "create"),
                          H5Dclose);
    if (!values.empty())
      hdf5_checked(
          H5Dwrite(data.get(), hdf5_memory_type(dtype_of<T>), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
          context, "write");
  }

  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    options.emplace_back("path", "data.h5");
    options.emplace_back("features", "x");
    return open_dataset("hdf5", params_for("hdf5", options), folder_);
  }
  std::string where(const std::string& name) const { return path("data.h5") + ", dataset " + name; }
  /// Where the last chunk of x is in data.h5, and how many bytes it has.
  std::pair<std::size_t, std::size_t> last_chunk() const {
    const Hdf5Lock lock;
    const Hdf5Handle file(H5Fopen(path("data.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle data(H5Dopen2(file.get(), "x", H5P_DEFAULT), H5Dclose);
    const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
    hsize_t count = 0, size = 0, offset[2] = {};
    haddr_t address = 0;
    unsigned skipped = 0;
    EXPECT_GE(H5Dget_num_chunks(data.get(), space.get(), &count), 0);
    EXPECT_GE(H5Dget_chunk_info(data.get(), space.get(), count - 1, offset, &skipped, &address, &size), 0);
    return {address, size};
  }

  template <typename T>
  static std::vector<T> counting(std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(i % 120);
    return values;
  }
};

}  // namespace
}  // namespace lockstep::testing
