// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/split_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/hash.h"
#include "data/choice_options.h"
#include "data/reader_dataset.h"
#include "data/table_info.h"

namespace lockstep {

namespace {

/// The input whose table has keys; null: none has.
const std::vector<std::uint64_t>* keys_of(const Dataset& data) {
  for (const DatasetPart& part : data.parts())
    if (const TableInfo* const table = part.data->table(); table != nullptr && !table->keys.empty())
      return &table->keys;
  return nullptr;
}

bool is_in_part(const ChoiceOptions& options, bool evaluation, double place) {
  using Part = ChoiceOptions::Part;
  switch (options.part) {
    case Part::all:
      return true;
    case Part::shares:
      return place >= options.first_share && place < options.last_share;
    case Part::holdout:
      return (place >= 1 - options.holdout) == evaluation;
    case Part::fold:
      break;
  }
  const double fold = std::floor(place * static_cast<double>(options.folds));
  return (fold == static_cast<double>(options.fold)) == evaluation;
}

}  // namespace

std::string_view split_key_of(std::string_view where, SplitKey key) {
  std::size_t end = where.size();  // of the path, which may have commas, too
  for (const std::string_view word : {", record ", ", line ", ", member ", ", sample "})
    if (const auto at = where.rfind(word); at != std::string_view::npos) end = std::min(end, at);
  const std::size_t name = where.substr(0, end).find_last_of('/') + 1;
  return key == SplitKey::file ? where.substr(name, end - name) : where.substr(name);
}

double split_place(std::uint64_t hash_of_key, std::uint64_t seed) {
  constexpr int kLeft = std::numeric_limits<std::uint64_t>::digits - std::numeric_limits<double>::digits;
  const std::array<std::uint64_t, 2> words{hash_of_key, seed};
  return std::ldexp(static_cast<double>(hash64(words.data(), sizeof words) >> kLeft),
                    -std::numeric_limits<double>::digits);
}

std::vector<double> split_places(const Dataset& data, SplitKey key, std::uint64_t seed) {
  std::vector<double> places(static_cast<std::size_t>(data.size()));
  if (key == SplitKey::column) {
    const std::vector<std::uint64_t>* const keys = keys_of(data);
    if (keys == nullptr)
      throw Error(ErrorKind::config, "split_key: column needs a table with the option key_column",
                  data.where(0), "Name the column, or write split_key: record.");
    LOCKSTEP_CHECK(keys->size() == places.size());
    std::ranges::transform(*keys, places.begin(),
                           [&](std::uint64_t hash) { return split_place(hash, seed); });
    return places;
  }
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i] = split_place(hash64(split_key_of(data.where(static_cast<std::int64_t>(i)), key)), seed);
  return places;
}

std::vector<std::uint32_t> list_by_key(const ChoiceOptions& options, bool evaluation,
                                       std::span<const double> places) {
  LOCKSTEP_REQUIRE(std::ssize(places) <= std::numeric_limits<std::uint32_t>::max(), ErrorKind::config,
                   "{} samples are too many for split_key", places.size());
  std::vector<std::uint32_t> list;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (is_in_part(options, evaluation, places[i])) list.push_back(static_cast<std::uint32_t>(i));
  return list;
}

}  // namespace lockstep
