// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_channels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace lockstep {

namespace {

template <typename T>
void choose(const void* from, void* to, std::int64_t records, std::int64_t all, std::int64_t positions,
            bool channels_first, std::span<const std::int64_t> channels) {
  const std::int64_t channel_stride = channels_first ? positions : 1;
  const std::int64_t position_stride = channels_first ? 1 : all;
  const auto width = static_cast<std::int64_t>(channels.size());
  for (std::int64_t record = 0; record < records; ++record) {
    const T* const source = static_cast<const T*>(from) + record * all * positions;
    T* const target = static_cast<T*>(to) + record * width * positions;
    for (std::int64_t i = 0; i < width; ++i) {
      const T* const channel = source + channels[static_cast<std::size_t>(i)] * channel_stride;
      for (std::int64_t position = 0; position < positions; ++position)
        target[position * width + i] = channel[position * position_stride];
    }
  }
}

}  // namespace

std::vector<std::int64_t> channels_option(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return {};
  const std::vector<std::int64_t>& channels = params.integers(option.name);
  if (channels.empty()) throw params.error(option.name, "is an empty list", "Name at least one channel.");
  if (std::set<std::int64_t>(channels.begin(), channels.end()).size() != channels.size())
    throw params.error(option.name, "names a channel twice", "Name each once.");
  return channels;
}

std::int64_t num_channels(const Hdf5Dataset& data, bool channels_first) {
  if (data.extents.size() < 2)
    throw Error(ErrorKind::data, "has one number per sample, and no channels to choose from", data.where,
                "Leave out the option channels.");
  return static_cast<std::int64_t>(channels_first ? data.extents[1] : data.extents.back());
}

void check_channels(const Hdf5Dataset& data, bool channels_first, std::span<const std::int64_t> channels) {
  const std::int64_t all = num_channels(data, channels_first);
  for (const std::int64_t channel : channels)
    if (channel >= all)
      throw Error(ErrorKind::data,
                  fmt::format("has {} channels, numbered from 0: there is no channel {} (extents {}, {})",
                              all, channel, fmt::join(data.extents, "x"),
                              channels_first ? "channels first" : "channels last"),
                  data.where, "Correct the option channels, or layout, which says where channels are.");
}

void read_channels(const Hdf5Dataset& data, const RowRange& rows, std::span<const std::int64_t> ascending,
                   hid_t memory_type, void* out) {
  Hdf5Context context = data.context();
  context.where = fmt::format("{}, record {}", data.where, rows.first);
  std::vector<hsize_t> start(data.extents.size(), 0), count = data.extents;
  start[0] = static_cast<hsize_t>(rows.first);
  count[0] = static_cast<hsize_t>(rows.last - rows.first);
  const Hdf5Handle in_file(hdf5_checked(H5Dget_space(data.id.get()), context, "read the extents"), H5Sclose);
  H5S_seloper_t operation = H5S_SELECT_SET;
  count[1] = 1;
  for (const std::int64_t channel : ascending) {
    start[1] = static_cast<hsize_t>(channel);
    hdf5_checked(H5Sselect_hyperslab(in_file.get(), operation, start.data(), nullptr, count.data(), nullptr),
                 context, "select channels");
    operation = H5S_SELECT_OR;
  }
  count[1] = ascending.size();
  const Hdf5Handle in_memory(
      hdf5_checked(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), context,
                   "describe memory"),
      H5Sclose);
  read_selection(data, memory_type, in_memory.get(), in_file.get(), out, context,
                 fmt::format("read {} channels of {} records", ascending.size(), rows.last - rows.first));
}

void choose_channels(std::size_t value_bytes, const void* from, void* to, std::int64_t records,
                     std::int64_t all, std::int64_t positions, bool channels_first,
                     std::span<const std::int64_t> channels) {
  switch (value_bytes) {
    case 1:
      return choose<std::uint8_t>(from, to, records, all, positions, channels_first, channels);
    case 2:
      return choose<std::uint16_t>(from, to, records, all, positions, channels_first, channels);
    case 4:
      return choose<std::uint32_t>(from, to, records, all, positions, channels_first, channels);
    default:
      return choose<std::uint64_t>(from, to, records, all, positions, channels_first, channels);
  }
}

}  // namespace lockstep
