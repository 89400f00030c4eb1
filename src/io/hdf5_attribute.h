// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: scalar attributes of HDF5 objects, and lists of texts. Texts have a fixed length and UTF-8,
// because texts of variable length are stored in a heap without checksums. The caller need not hold the HDF5
// lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5_handle.h"

namespace lockstep {

void write_attribute(hid_t object, const char* name, std::int64_t value, const Hdf5Context& context);
void write_attribute(hid_t object, const char* name, std::uint64_t value, const Hdf5Context& context);
void write_attribute(hid_t object, const char* name, const std::string& value, const Hdf5Context& context);
/// A list of texts, with one axis. Not empty.
void write_attribute(hid_t object, const char* name, const std::vector<std::string>& values,
                     const Hdf5Context& context);

/// Throw Error(context.kind) if the attribute is missing or of another type.
void read_attribute(hid_t object, const char* name, std::int64_t& value, const Hdf5Context& context);
void read_attribute(hid_t object, const char* name, std::uint64_t& value, const Hdf5Context& context);
void read_attribute(hid_t object, const char* name, std::string& value, const Hdf5Context& context);

/// The one text of an open attribute, of fixed or variable length and any character set. Throws
/// Error(context.kind).
std::string text_of_attribute(hid_t attribute, const Hdf5Context& context);

/// The texts of an attribute with one axis, of fixed or variable length; empty if there is none, or if it is
/// something else.
std::vector<std::string> text_list_attribute(hid_t object, const char* name, const Hdf5Context& context);

}  // namespace lockstep
