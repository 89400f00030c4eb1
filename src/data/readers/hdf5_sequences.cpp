// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_sequences.h"

#include <vector>

#include "core/error.h"
#include "io/hdf5_type.h"

namespace lockstep {

namespace {

/// What HDF5 has allocated for records of a variable-length type.
class Records {
 public:
  Records(hid_t type, hid_t space, std::int64_t count)
      : type_(type), space_(space), records_(static_cast<std::size_t>(count), hvl_t{0, nullptr}) {}
  ~Records() { H5Dvlen_reclaim(type_, space_, H5P_DEFAULT, records_.data()); }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  void* data() { return records_.data(); }
  std::span<const float> values(std::int64_t i) const {
    const hvl_t& record = records_[static_cast<std::size_t>(i)];
    return {static_cast<const float*>(record.p), record.len};
  }

 private:
  const hid_t type_, space_;
  std::vector<hvl_t> records_;
};

}  // namespace

bool holds_sequences(const Hdf5Dataset& data) {
  if (data.file_class != H5T_VLEN) return false;
  const Hdf5Handle base(hdf5_checked(H5Tget_super(data.file_type.get()), data.context(), "read the type"),
                        H5Tclose);
  if (!hdf5_number_type(base.get(), data.context()))
    throw Error(ErrorKind::data,
                fmt::format("its sequences hold {}, a type that cannot be read", hdf5_type_name(base.get())),
                data.where,
                "Sequences may be of bool, int8 to int64, uint8 to uint64, float16, float32 or float64.");
  if (data.extents.size() != 1)
    throw Error(ErrorKind::data, "has several sequences in a record", data.where,
                "Store one sequence per record: a dataset of one axis.");
  return true;
}

void read_sequences(const Hdf5Dataset& data, std::int64_t first, std::int64_t count,
                    FunctionRef<void(std::int64_t i, std::span<const float> values)> use) {
  const Hdf5Context context = data.context();
  const Hdf5Handle type(hdf5_checked(H5Tvlen_create(H5T_NATIVE_FLOAT), context, "describe memory"), H5Tclose);
  const auto rows = static_cast<hsize_t>(count);
  const Hdf5Handle space(hdf5_checked(H5Screate_simple(1, &rows, nullptr), context, "describe memory"),
                         H5Sclose);
  Records records(type.get(), space.get(), count);
  read_slab(data, first, count, type.get(), records.data());
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      use(i, records.values(i));
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      throw Error(error.kind(), error.what_happened(), fmt::format("{}, record {}", data.where, first + i),
                  error.advice());
    }
  }
}

}  // namespace lockstep
