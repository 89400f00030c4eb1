// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: datasets whose axes have another order than samples need. MATLAB writes its
// arrays (files of version 7.3) with reversed axes, and tells its class in the attribute MATLAB_class; other
// files have the axis of samples last. Such a dataset is read into memory as a whole when its first values
// are read, because its samples lie scattered in the file. The caller holds the Hdf5Lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/readers/hdf5_dataset.h"

namespace lockstep {

/// Gives `data`, whose extents are those in the file, its axes as MATLAB shows them, if MATLAB wrote it;
/// then, with `samples_last`, its last axis comes first. Throws Error(data) for what MATLAB stores in forms
/// of its own (texts, cells, tables), and for axes that cannot be exchanged.
void order_axes(Hdf5Dataset& data, bool samples_last);

/// Takes labels of extents 1 x N as N labels.
void take_as_column(Hdf5Dataset& labels);

/// "MATLAB's axes, the one of samples first, are 100x3; read into memory as a whole"; empty for axes that are
/// as in the file.
std::string axes_text(const Hdf5Dataset& data);
/// Logs it, once for each dataset of each file.
void say_axes_once(const Hdf5Dataset& data);

/// Values in memory, with the axes of the dataset.
struct Hdf5Reordered {
  hsize_t rows_per_chunk = 1;  ///< in the file
  Hdf5Handle type;             ///< of a value; none: not read yet
  std::vector<char> values;
};
/// Rows of a dataset with `axes`, each value as `memory_type`.
void read_reordered(const Hdf5Dataset& data, std::int64_t first, std::int64_t count, hid_t memory_type,
                    void* out);

}  // namespace lockstep
