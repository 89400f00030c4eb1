// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Types of numbers in HDF5 files: how they are held in memory, and the names of all types for messages. The
// caller holds the Hdf5Lock.
#pragma once

#include <optional>
#include <string>

#include "io/hdf5_handle.h"

namespace lockstep {

/// Numbers of a file in memory.
struct Hdf5NumberType {
  DType dtype = DType::f32;  ///< uint32 becomes int64
  /// Numbers are uint64: `dtype` is int64, and has their bits.
  bool is_uint64 = false;
  Hdf5Handle memory;  ///< the type in memory, for H5Dread
};

/// The type of the numbers that HDF5 values of `type` stand for: an enumeration (h5py's bool) is its
/// integers, a bitfield of whole bytes (PyTables' bool) an unsigned integer, other types are themselves.
Hdf5Handle hdf5_plain_type(hid_t type, const Hdf5Context& context);

/// Nothing for a type that holds no numbers, or numbers that cannot be read.
std::optional<Hdf5NumberType> hdf5_number_type(hid_t type, const Hdf5Context& context);

/// "uint64", "an enumeration (FALSE, TRUE)", "a compound type (x, y)", "an object reference".
std::string hdf5_type_name(hid_t type);

/// Lets HDF5 convert bitfields of whole bytes to numbers. Once for each process.
void hdf5_register_bitfields();

}  // namespace lockstep
