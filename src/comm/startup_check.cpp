// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/startup_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "core/cpu.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/message_lines.h"
#include "core/name_list.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

constexpr std::size_t kExcerpt = 120;  // shown characters of a value
constexpr const char* kWhat = "start-up check";

template <std::size_t N>
void put(std::array<char, N>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

// One hash of all fields; the lengths separate neighbours.
std::uint64_t hash_of(std::span<const NamedText> fields, bool values) {
  std::vector<std::uint64_t> hashes;
  for (const NamedText& field : fields) {
    const std::string& text = values ? field.second : field.first;
    hashes.push_back(text.size());
    hashes.push_back(hash64(text));
  }
  return hash64(hashes.data(), hashes.size() * sizeof(std::uint64_t));
}

// Rank 0's fields as one text: each name and value, preceded by its length.
std::string packed(std::span<const NamedText> fields) {
  std::string text;
  for (const NamedText& field : fields)
    for (const std::string& part : {field.first, field.second})
      text += fmt::format("{}:", part.size()) + part;
  return text;
}

std::vector<NamedText> unpacked(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t colon = text.find(':', at);
    LOCKSTEP_CHECK(colon != std::string::npos);
    const std::size_t length = std::stoull(text.substr(at, colon - at));
    parts.push_back(text.substr(colon + 1, length));
    at = colon + 1 + length;
  }
  std::vector<NamedText> fields;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) fields.emplace_back(parts[i], parts[i + 1]);
  return fields;
}

// A rank's first difference from rank 0.
struct Difference {
  std::int32_t differs = 0, field = 0;
  std::array<char, 64> host{}, name{}, expected_name{};
  std::array<char, 2 * kExcerpt> value{}, expected{};
};

std::string excerpt(const std::string& text, std::size_t around) {
  const std::size_t first = around < kExcerpt / 3 ? 0 : around - kExcerpt / 3;
  if (first >= text.size() && first > 0) return "... (ends here)";
  std::string part = text.substr(first, kExcerpt);
  if (first > 0) part = "..." + part;
  if (first + kExcerpt < text.size()) part += "...";
  return part;
}

Difference difference(std::span<const NamedText> mine, std::span<const NamedText> reference) {
  Difference found;
  put(found.host, host_name());
  for (std::size_t i = 0; i < std::max(mine.size(), reference.size()); ++i) {
    const NamedText own = i < mine.size() ? mine[i] : NamedText{"(none)", ""};
    const NamedText other = i < reference.size() ? reference[i] : NamedText{"(none)", ""};
    if (own == other) continue;
    const auto [at, unused] =
        std::mismatch(own.second.begin(), own.second.end(), other.second.begin(), other.second.end());
    const auto place = static_cast<std::size_t>(at - own.second.begin());
    found.differs = 1;
    found.field = static_cast<std::int32_t>(i);
    put(found.name, own.first);
    put(found.expected_name, other.first);
    put(found.value, excerpt(own.second, place));
    put(found.expected, excerpt(other.second, place));
    return found;
  }
  return found;
}

// "rank 2 on host b", "ranks 2-5 on hosts b, c".
std::string ranks_and_hosts(std::span<const int> ranks, const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const int rank : ranks)
    if (const std::string& host = hosts[static_cast<std::size_t>(rank)];
        std::find(names.begin(), names.end(), host) == names.end())
      names.push_back(host);
  return fmt::format("{} {} on {} {}", ranks.size() == 1 ? "rank" : "ranks", rank_list(ranks),
                     names.size() == 1 ? "host" : "hosts", name_list(names));
}

[[noreturn]] void explain(Communicator& communicator, std::span<const NamedText> fields) {
  std::string reference_text = packed(fields);
  std::uint64_t length = reference_text.size();
  communicator.broadcast(&length, sizeof length, 0, kWhat);
  reference_text.resize(length);
  communicator.broadcast(reference_text.data(), length, 0, kWhat);
  const Difference mine = difference(fields, unpacked(reference_text));
  std::vector<Difference> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(&mine, sizeof mine, all.data(), kWhat);

  int field = -1;
  std::vector<std::string> hosts;
  for (const Difference& one : all) {
    hosts.emplace_back(one.host.data());
    if (one.differs != 0 && (field < 0 || one.field < field)) field = one.field;
  }
  LOCKSTEP_CHECK(field >= 0, "hashes differ, but no field does");
  // The ranks that differ from rank 0 in this field, grouped by value; the other ranks have rank 0's value.
  std::map<std::string, std::vector<int>> groups;
  std::vector<int> same;
  const Difference* example = nullptr;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Difference& one = all[static_cast<std::size_t>(rank)];
    if (one.differs == 0 || one.field != field) {
      same.push_back(rank);
      continue;
    }
    if (example == nullptr) example = &one;
    groups[shown_format("{}: {}", one.name.data(), one.value.data())].push_back(rank);
  }
  std::string text =
      shown_format("'{}' differs between the ranks\n    {}: {}: {}", example->expected_name.data(),
                   ranks_and_hosts(same, hosts), example->expected_name.data(), example->expected.data());
  for (const auto& [value, ranks] : groups)
    text += fmt::format("\n    {}: {}", ranks_and_hosts(ranks, hosts), value);
  throw error_of_lines(ErrorKind::config, text, {},
                       "Start all ranks with the same program, libraries, configuration and data.");
}

}  // namespace

std::string rank_list(std::span<const int> ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    if (!text.empty()) text += ", ";
    text += i == j ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[j]);
    i = j + 1;
  }
  return text;
}

void require_same(Communicator& communicator, std::span<const NamedText> fields) {
  if (communicator.size() == 1) return;
  using Hashes = std::array<std::uint64_t, 2>;
  const Hashes mine{hash_of(fields, false), hash_of(fields, true)};
  std::vector<Hashes> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(mine.data(), sizeof mine, all.data(), kWhat);
  if (std::any_of(all.begin(), all.end(), [&](const Hashes& one) { return one != all.front(); }))
    explain(communicator, fields);
}

void require_same_bits(Communicator& communicator, std::uint64_t hash, const char* what) {
  if (communicator.size() == 1) return;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(&hash, sizeof hash, all.data(), what);
  std::map<std::uint64_t, std::vector<int>> groups;
  for (int rank = 0; rank < communicator.size(); ++rank)
    groups[all[static_cast<std::size_t>(rank)]].push_back(rank);
  if (groups.size() == 1) return;

  std::array<char, 64> host{};
  put(host, host_name());
  std::vector<std::array<char, 64>> gathered(all.size());
  communicator.allgather(host.data(), host.size(), gathered.data(), what);
  std::vector<std::string> hosts;
  for (const auto& one : gathered) hosts.emplace_back(one.data());

  std::size_t most = 0, second = 0;
  std::uint64_t common = 0;
  for (const auto& [value, ranks] : groups) {
    if (ranks.size() > most) {
      second = std::exchange(most, ranks.size());
      common = value;
    } else {
      second = std::max(second, ranks.size());
    }
  }
  std::string text = fmt::format("the ranks have diverged: {} differ", what);
  if (most == second) {
    text += "; no value has a majority";
    for (const auto& [value, ranks] : groups)
      text += fmt::format("\n    {}: {:016x}", ranks_and_hosts(ranks, hosts), value);
  } else {
    for (const auto& [value, ranks] : groups)
      if (value != common)
        text += fmt::format("\n    {} has {:016x}, the others have {:016x}", ranks_and_hosts(ranks, hosts),
                            value, common);
  }
  throw error_of_lines(
      ErrorKind::numeric, text, {},
      "Resume from the last checkpoint. A host that is reported repeatedly probably has a hardware fault.");
}

}  // namespace lockstep
