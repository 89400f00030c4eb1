// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: what the stored numbers of a netCDF-4 variable mean, by its attributes
// (NetCDF Users Guide, Attribute Conventions; CF conventions 2.5.1 and 8.1):
//
//   _FillValue, missing_value   stored numbers that stand for "no value"
//   scale_factor, add_offset    value = stored * scale_factor + add_offset
//   _Unsigned = "true", "false" stored integers are unsigned or signed, whatever their type says
//   valid_min, valid_max, valid_range   no stored number should be beyond; one that is stays what it is, and
//   a
//                               warning says so once. Libraries differ: xarray takes it, netCDF4-python masks
//                               it
//
// The numbers may be written as texts. A missing value that the stored type cannot hold matches no number.
// In files that the netCDF library has written, its default fill values stand for "no value", too, where a
// variable of more than one byte has no _FillValue. Values are computed in double and rounded to float32.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "data/readers/hdf5_dataset.h"
#include "io/hdf5_type.h"

namespace lockstep {

/// The options of the reader about it.
struct NetcdfOptions {
  bool unpack = true;          ///< apply scale_factor, add_offset and _Unsigned
  std::optional<double> fill;  ///< in place of missing values; empty: they are errors
  bool are_labels = false;     ///< whole numbers are classes, which are never filled in
};
/// The same for labels.
inline NetcdfOptions for_labels(NetcdfOptions options) {
  options.are_labels = true;
  return options;
}

class NetcdfValues {
 public:
  NetcdfValues() = default;
  /// Numbers without attributes.
  NetcdfValues(std::string name, const Hdf5NumberType& stored)
      : name_(std::move(name)), stored_(stored.dtype), is_uint64_(stored.is_uint64) {}
  /// Reads the attributes of a dataset, whose numbers are `stored` in memory. Throws Error(data)
  /// for attributes that make no sense, Error(config) for a `fill` that the values cannot hold. The caller
  /// holds the Hdf5Lock.
  NetcdfValues(const Hdf5Dataset& data, const Hdf5NumberType& stored, const NetcdfOptions& options);

  /// Stored numbers are the values, and none is missing or too large.
  bool plain() const { return !scaled_ && wrap_ == 0 && fills_.empty() && !is_uint64_ && !valid_; }
  /// The type of the values.
  DType type() const;
  /// values[i] = the meaning of stored[i]. Throws Error(data) at where(i) for a missing one, and for one that
  /// int64 does not hold.
  void decode(const void* stored, std::int64_t count, void* values,
              FunctionRef<std::string(std::int64_t i)> where) const;
  /// "value = stored * 0.01 + 273.15; no value: -32767"; empty if they are the stored numbers.
  std::string text() const;

 private:
  template <typename Stored, typename Value>
  void decode_as(const void* stored, std::int64_t count, void* values,
                 FunctionRef<std::string(std::int64_t i)> where) const;
  template <typename Stored>
  void decode_from(const void* stored, std::int64_t count, void* values,
                   FunctionRef<std::string(std::int64_t i)> where) const;

  /// The stored number that is meant.
  double meant(double stored) const {
    if (wrap_ > 0 && stored < 0) return stored + wrap_;
    return wrap_ < 0 && stored >= -wrap_ / 2 ? stored + wrap_ : stored;
  }
  /// What valid_min and valid_max or valid_range say, of stored numbers or of values.
  struct Valid {
    double least, most;
    bool of_values;
    std::string text;                ///< "valid_range [0, 100]"
    std::atomic<bool> said = false;  ///< that a number is beyond
  };
  std::shared_ptr<Valid> valid_of(const Hdf5Dataset& data);
  void check_valid(double stored, FunctionRef<std::string()> where) const;

  std::string name_;
  DType stored_ = DType::f32;
  bool is_uint64_ = false;  ///< stored numbers have the bits of uint64
  bool scaled_ = false;
  /// Above 0: added to stored numbers below 0. Below 0: added to those from half of it on. 0: nothing.
  double wrap_ = 0;
  double scale_ = 1, offset_ = 0;
  std::vector<std::string> fills_;  ///< bytes of stored numbers
  std::optional<double> fill_;
  bool are_classes_ = false;
  std::shared_ptr<Valid> valid_;
};

}  // namespace lockstep
