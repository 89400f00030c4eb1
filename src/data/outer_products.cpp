// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/outer_products.h"

#include <algorithm>
#include <vector>

#include "core/in_parallel.h"
#include "core/vector_clones.h"

namespace lockstep {

namespace {

constexpr std::int64_t kRows = 4, kColumns = 8;  // of a group, of a panel
/// Panels whose rows a thread takes together: their values stay in its cache.
constexpr std::int64_t kPanelsTogether = 4;
/// Vectors that are taken together: at least kLeastVectors, and up to kMostVectors small ones.
constexpr std::int64_t kLeastVectors = 128, kMostVectors = 4096, kValuesTogether = std::int64_t{1} << 18;
/// Smaller work is done by one thread: starting others takes longer.
constexpr std::int64_t kLeastProducts = std::int64_t{1} << 20;
using Doubles = double __attribute__((vector_size(kColumns * sizeof(double))));
using UnalignedDoubles =
    double __attribute__((vector_size(kColumns * sizeof(double)), aligned(8), may_alias));

std::int64_t panels_of(std::int64_t size) { return (size + kColumns - 1) / kColumns; }

/// Numbers before the groups of panel p, of `panels`: the sum over panels q < p of kColumns rows of width
/// (panels - q) kColumns.
std::int64_t panel_place(std::int64_t p, std::int64_t panels) {
  return kColumns * kColumns * (p * panels - p * (p - 1) / 2);
}

/// Adds to kRows rows of kColumns columns, `step` apart. `rows` and `columns`: the vectors' values of the
/// panel with the rows, from the first row on, and of the panel of columns.
LOCKSTEP_VECTOR_CLONES
void add_block(const double* rows, const double* columns, std::int64_t count, double* block,
               std::int64_t step) {
  const auto at = [&](std::int64_t row) -> UnalignedDoubles& {
    return *reinterpret_cast<UnalignedDoubles*>(block + row * step);
  };
  Doubles sum0 = at(0), sum1 = at(1), sum2 = at(2), sum3 = at(3);
  for (std::int64_t t = 0; t < count; ++t) {
    const Doubles here = *reinterpret_cast<const UnalignedDoubles*>(columns + t * kColumns);
    const double* const row = rows + t * kColumns;
    sum0 += row[0] * here;
    sum1 += row[1] * here;
    sum2 += row[2] * here;
    sum3 += row[3] * here;
  }
  at(0) = sum0;
  at(1) = sum1;
  at(2) = sum2;
  at(3) = sum3;
}

}  // namespace

std::int64_t packed_count(std::int64_t size) { return panel_place(panels_of(size), panels_of(size)); }

std::int64_t packed_place(std::int64_t row, std::int64_t column, std::int64_t size) {
  const std::int64_t panel = row / kColumns, first = panel * kColumns;
  const std::int64_t width = panels_of(size) * kColumns - first;
  return panel_place(panel, panels_of(size)) + (row - first) * width + (column - first);
}

void add_outer_products(const double* vectors, std::int64_t count, std::int64_t size, double* packed,
                        int threads) {
  const std::int64_t panels = panels_of(size);
  const std::int64_t together =
      std::min(count, std::clamp(kValuesTogether / size, kLeastVectors, kMostVectors));
  if (together * size * size < kLeastProducts) threads = 1;
  std::vector<double> by_panel(
      static_cast<std::size_t>(panels * kColumns * together));  // [panel][vector][column]
  for (std::int64_t done = 0; done < count; done += together) {
    const std::int64_t now = std::min(together, count - done);
    const auto values_of = [&](std::int64_t panel) { return by_panel.data() + panel * together * kColumns; };
    in_parallel(threads, (panels + kPanelsTogether - 1) / kPanelsTogether, [&](std::int64_t i) {
      for (std::int64_t p = i * kPanelsTogether; p < std::min((i + 1) * kPanelsTogether, panels); ++p)
        for (std::int64_t t = 0; t < now; ++t)
          std::copy_n(vectors + (done + t) * size + p * kColumns, std::min(kColumns, size - p * kColumns),
                      values_of(p) + t * kColumns);
    });
    in_parallel(threads, (panels + kPanelsTogether - 1) / kPanelsTogether, [&](std::int64_t i) {
      const std::int64_t first = i * kPanelsTogether, last = std::min(first + kPanelsTogether, panels);
      for (std::int64_t columns = first; columns < panels; ++columns)
        for (std::int64_t p = first; p < std::min(last, columns + 1); ++p) {
          const std::int64_t width = (panels - p) * kColumns;
          double* const block = packed + panel_place(p, panels) + (columns - p) * kColumns;
          for (std::int64_t row = 0; row < kColumns; row += kRows)
            add_block(values_of(p) + row, values_of(columns), now, block + row * width, width);
        }
    });
  }
}

}  // namespace lockstep
