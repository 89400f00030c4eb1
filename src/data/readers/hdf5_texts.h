// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: labels that are texts, of fixed or variable length: the names of classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "core/function_ref.h"
#include "data/readers/hdf5_dataset.h"

namespace lockstep {

inline bool holds_texts(const Hdf5Dataset& data) { return data.file_class == H5T_STRING; }

/// True for one text for each record: a text, or a row of characters as netCDF stores texts.
bool has_one_text(const Hdf5Dataset& data);

/// Calls use(i, text) for each of the records [rows.first, rows.last), i from 0 on. Texts of fixed length end
/// at the first zero byte, or without the blanks that fill them up, as their type says. The caller holds the
/// Hdf5Lock.
void read_texts(const Hdf5Dataset& data, const RowRange& rows,
                FunctionRef<void(std::int64_t i, std::string_view text)> use);

/// The classes of labels that are texts: the option classes, or all texts that the labels have in the rows of
/// the option rows, sorted by their bytes. Empty if the labels are something else. Throws Error(data) for an
/// empty text, and for more different ones than classes can be.
std::vector<std::string> hdf5_classes(const Params& params, const std::string& base_directory);

}  // namespace lockstep
