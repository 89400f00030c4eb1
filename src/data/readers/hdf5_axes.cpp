// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_axes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>
#include <string_view>

#include "core/log.h"
#include "io/hdf5_attribute.h"
#include "io/hdf5_type.h"

namespace lockstep {

namespace {

/// Read together.
constexpr hsize_t kSlabBytes = hsize_t{8} << 20;
constexpr std::array<std::string_view, 11> kNumberClasses{
    "double", "single", "logical", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"};

bool has_attribute(const Hdf5Dataset& data, const char* name) {
  return hdf5_checked(H5Aexists(data.id.get(), name), data.context(), "look for an attribute") > 0;
}

/// Whether MATLAB wrote the dataset. Throws for what holds no plain numbers.
bool is_of_matlab(const Hdf5Dataset& data) {
  if (!has_attribute(data, "MATLAB_class")) return false;
  const Hdf5Handle attribute(
      hdf5_checked(H5Aopen(data.id.get(), "MATLAB_class", H5P_DEFAULT), data.context(), "open an attribute"),
      H5Aclose);
  const std::string name = text_of_attribute(attribute.get(), data.context());
  const bool has_numbers = std::ranges::find(kNumberClasses, name) != kNumberClasses.end();
  if (!has_numbers || has_attribute(data, "MATLAB_object_decode"))
    throw Error(
        ErrorKind::data,
        fmt::format("is an array of MATLAB's class {}, which MATLAB stores in a form of its own", name),
        data.where,
        name == "char" || name == "string" || name == "categorical" || name == "cell"
            ? "Save numbers: y = double(categorical(y)) in MATLAB, whose classes count from 1."
            : "Save an array of numbers for it in MATLAB.");
  if (has_attribute(data, "MATLAB_empty"))
    throw Error(ErrorKind::data, "is an empty array of MATLAB", data.where, "Save an array with values.");
  return true;
}

/// Exchanges the axes; those of the file stay as they are stored.
void set_axes(Hdf5Dataset& data, std::vector<int> axes) {
  data.reordered = nullptr;
  data.axes.clear();
  if (std::ranges::is_sorted(axes)) return;
  data.axes = std::move(axes);
  data.reordered = std::make_shared<Hdf5Reordered>();
  data.reordered->rows_per_chunk = data.rows_per_chunk;
  data.rows_per_chunk = 1;
  data.filters.reset();
  data.direct_chunks = false;
}

/// Copies rows of a file from `first` on to their places. `strides`: of each axis of the file, in values of
/// the result.
template <typename T>
void scatter(const T* from, T* to, hsize_t first, hsize_t rows, const std::vector<hsize_t>& extents,
             const std::vector<std::size_t>& strides) {
  const std::size_t last = extents.size() - 1;
  std::vector<hsize_t> at(last, 0);  // of all axes but the last
  at[0] = first;
  for (std::size_t axis = last; axis > 0;) {
    std::size_t place = 0;
    for (axis = 0; axis < last; ++axis) place += at[axis] * strides[axis];
    for (hsize_t i = 0; i < extents[last]; ++i) to[place + i * strides[last]] = *from++;
    for (axis = last; axis > 0; --axis) {
      if (++at[axis - 1] < (axis == 1 ? first + rows : extents[axis - 1])) break;
      at[axis - 1] = 0;
    }
  }
}

/// The extents in the file.
std::vector<hsize_t> stored_extents(const Hdf5Dataset& data) {
  std::vector<hsize_t> extents(data.axes.size());
  for (std::size_t i = 0; i < extents.size(); ++i)
    extents[static_cast<std::size_t>(data.axes[i])] = data.extents[i];
  return extents;
}

void load(const Hdf5Dataset& data, hid_t memory_type) {
  const std::size_t value_bytes = H5Tget_size(memory_type);
  const std::vector<hsize_t> extents = stored_extents(data);
  std::vector<std::size_t> strides(extents.size());
  std::size_t stride = 1;
  for (std::size_t i = data.axes.size(); i-- > 0;) {
    strides[static_cast<std::size_t>(data.axes[i])] = stride;
    stride *= data.extents[i];
  }
  check_memory(data.where, static_cast<std::int64_t>(stride), static_cast<double>(value_bytes));
  Hdf5Reordered& held = *data.reordered;
  held.type = Hdf5Handle();
  held.values.assign(stride * value_bytes, 0);
  if (stride == 0) return;
  const std::size_t row_bytes = stride / extents[0] * value_bytes;
  const hsize_t step =
      std::max<hsize_t>(1, kSlabBytes / (row_bytes * held.rows_per_chunk)) * held.rows_per_chunk;
  std::vector<char> slab;
  for (hsize_t first = 0; first < extents[0]; first += step) {
    const hsize_t rows = std::min(step, extents[0] - first);
    slab.resize(rows * row_bytes);
    read_stored_slab(data, extents, first, rows, memory_type, slab.data());
    const auto place = [&]<typename T>(T) {
      scatter(reinterpret_cast<const T*>(slab.data()), reinterpret_cast<T*>(held.values.data()), first, rows,
              extents, strides);
    };
    switch (value_bytes) {
      case 1:
        place(std::uint8_t{});
        break;
      case 2:
        place(std::uint16_t{});
        break;
      case 4:
        place(std::uint32_t{});
        break;
      default:
        place(std::uint64_t{});
    }
  }
  held.type = Hdf5Handle(hdf5_checked(H5Tcopy(memory_type), data.context(), "copy a type"), H5Tclose);
}

}  // namespace

void order_axes(Hdf5Dataset& data, bool samples_last) {
  const bool reversed = is_of_matlab(data);
  const std::size_t rank = data.extents.size();
  if ((!reversed && !samples_last) || rank < 2) return;
  if (!hdf5_number_type(data.file_type.get(), data.context()))
    throw Error(ErrorKind::data,
                fmt::format("holds {}, whose axes cannot be exchanged", hdf5_type_name(data.file_type.get())),
                data.where,
                reversed ? "Save arrays of numbers: of complex ones the real and the imaginary parts."
                         : "Leave out sample_axis.");
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (reversed) std::ranges::reverse(axes);
  if (samples_last) std::rotate(axes.begin(), axes.end() - 1, axes.end());
  std::vector<hsize_t> extents;
  for (const int axis : axes) extents.push_back(data.extents[static_cast<std::size_t>(axis)]);
  data.extents = std::move(extents);
  data.of_matlab = reversed;
  set_axes(data, std::move(axes));
}

void take_as_column(Hdf5Dataset& labels) {
  std::vector<int> axes = labels.axes.empty() ? std::vector<int>{0, 1} : labels.axes;
  std::ranges::reverse(axes);
  std::ranges::reverse(labels.extents);
  set_axes(labels, std::move(axes));
}

std::string axes_text(const Hdf5Dataset& data) {
  if (data.axes.empty() && !data.of_matlab) return "";
  return fmt::format("{} axes, the one of samples first, are {}{}", data.of_matlab ? "MATLAB's" : "its",
                     fmt::join(data.extents, "x"), data.axes.empty() ? "" : "; read into memory as a whole");
}

void say_axes_once(const Hdf5Dataset& data) {
  static auto* const said = new std::set<std::string>;  // guarded by the Hdf5Lock
  const std::string text = axes_text(data);
  if (!text.empty() && said->insert(data.where).second) log_info("{}: {}", data.where, text);
}

void read_reordered(const Hdf5Dataset& data, std::int64_t first, std::int64_t count, hid_t memory_type,
                    void* out) {
  Hdf5Reordered& held = *data.reordered;
  if (held.type.get() < 0 || H5Tequal(held.type.get(), memory_type) <= 0) load(data, memory_type);
  const std::size_t row_bytes = static_cast<std::size_t>(data.values_per_row()) * H5Tget_size(memory_type);
  std::memcpy(out, held.values.data() + static_cast<std::size_t>(first) * row_bytes,
              static_cast<std::size_t>(count) * row_bytes);
}

}  // namespace lockstep
