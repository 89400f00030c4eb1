// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/table_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

static_assert(sizeof(float) == sizeof(std::uint32_t));

/// Whether all bits of a row are 0: -0 is a number to be sent.
bool is_zero(const float* row, std::int64_t width) {
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    std::uint32_t one = 0;
    std::memcpy(&one, row + i, sizeof one);
    bits |= one;
  }
  return bits == 0;
}

std::vector<TableRows::Table> tables_in(const VariableStore& variables, std::span<const Range> ranges) {
  std::vector<TableRows::Table> tables;
  std::int64_t before = 0;  // elements of earlier ranges
  for (const Range& range : ranges) {
    for (const Variable& variable : variables.variables())
      if (TableRows::holds(variable) && range.first <= variable.offset && variable.offset < range.last)
        tables.push_back({before + variable.offset - range.first, variable.shape[0],
                          variable.shape.num_elements() / variable.shape[0]});
    before += range.size();
  }
  std::ranges::sort(tables, {}, &TableRows::Table::first);
  return tables;
}

std::int64_t total_of(std::span<const Range> ranges) {
  std::int64_t sum = 0;
  for (const Range& range : ranges) sum += range.size();
  return sum;
}

}  // namespace

TableRows::TableRows(std::int64_t elements, std::vector<Table> tables)
    : elements_(elements), tables_(std::move(tables)) {}

TableRows::TableRows(const VariableStore& variables, std::span<const Range> ranges)
    : TableRows(total_of(ranges), tables_in(variables, ranges)) {}

// The elements between the tables; then of each table the number of its rows, their numbers, and the rows.
std::size_t TableRows::pack(const float* values, std::byte* to) const {
  std::byte* const begin = to;
  const std::byte* const end = to + static_cast<std::size_t>(elements_) * sizeof(float);
  const auto put = [&](const void* from, std::size_t bytes) {
    if (static_cast<std::size_t>(end - to) <= bytes) return false;
    std::memcpy(to, from, bytes);
    to += bytes;
    return true;
  };
  std::int64_t reached = 0;
  for (std::size_t i = 0; i <= tables_.size(); ++i) {
    const std::int64_t until = i < tables_.size() ? tables_[i].first : elements_;
    if (!put(values + reached, static_cast<std::size_t>(until - reached) * sizeof(float))) return 0;
    if (i < tables_.size()) reached = until + tables_[i].rows * tables_[i].width;
  }
  for (const Table& table : tables_) {
    std::uint32_t count = 0;
    std::byte* const place = to;
    if (!put(&count, sizeof count)) return 0;
    for (std::int64_t row = 0; row < table.rows; ++row) {
      if (is_zero(values + table.first + row * table.width, table.width)) continue;
      const auto number = static_cast<std::uint32_t>(row);
      if (!put(&number, sizeof number)) return 0;
      ++count;
    }
    std::memcpy(place, &count, sizeof count);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t row = 0;
      std::memcpy(&row, place + (i + 1) * sizeof row, sizeof row);
      if (!put(values + table.first + row * table.width,
               static_cast<std::size_t>(table.width) * sizeof(float)))
        return 0;
    }
  }
  return static_cast<std::size_t>(to - begin);
}

void TableRows::unpack(const std::byte* from, std::size_t bytes, float* values) const {
  const std::byte* const end = from + bytes;
  const auto get = [&](void* to, std::size_t count) {
    LOCKSTEP_CHECK(static_cast<std::size_t>(end - from) >= count, "{} bytes of rows", bytes);
    std::memcpy(to, from, count);
    from += count;
  };
  std::int64_t reached = 0;
  for (std::size_t i = 0; i <= tables_.size(); ++i) {
    const std::int64_t until = i < tables_.size() ? tables_[i].first : elements_;
    get(values + reached, static_cast<std::size_t>(until - reached) * sizeof(float));
    if (i < tables_.size()) reached = until + tables_[i].rows * tables_[i].width;
  }
  for (const Table& table : tables_) {
    float* const to = values + table.first;
    std::fill_n(to, table.rows * table.width, 0.0F);
    std::uint32_t count = 0;
    get(&count, sizeof count);
    const std::byte* numbers = from;
    LOCKSTEP_CHECK(static_cast<std::size_t>(end - from) >= count * sizeof count, "{} rows", count);
    from += count * sizeof count;
    for (std::uint32_t i = 0; i < count; ++i, numbers += sizeof(std::uint32_t)) {
      std::uint32_t row = 0;
      std::memcpy(&row, numbers, sizeof row);
      LOCKSTEP_CHECK(row < table.rows, "row {} of {}", row, table.rows);
      get(to + row * table.width, static_cast<std::size_t>(table.width) * sizeof(float));
    }
  }
  LOCKSTEP_CHECK(from == end, "{} bytes more than the rows", end - from);
}

}  // namespace lockstep
