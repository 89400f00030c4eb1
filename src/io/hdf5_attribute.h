// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: scalar attributes of HDF5 objects. Texts have a fixed length and UTF-8 (texts of variable
// length lie in a heap without checksums). The caller holds no lock; each call takes it.
#pragma once

#include <cstdint>
#include <string>

#include "io/hdf5_handle.h"

namespace lockstep {

void write_attribute(hid_t object, const char* name, std::int64_t value, const Hdf5Context& context);
void write_attribute(hid_t object, const char* name, std::uint64_t value, const Hdf5Context& context);
void write_attribute(hid_t object, const char* name, const std::string& value, const Hdf5Context& context);

/// Each throws Error(context.kind) when the attribute is missing or of another type.
void read_attribute(hid_t object, const char* name, std::int64_t& value, const Hdf5Context& context);
void read_attribute(hid_t object, const char* name, std::uint64_t& value, const Hdf5Context& context);
void read_attribute(hid_t object, const char* name, std::string& value, const Hdf5Context& context);

}  // namespace lockstep
