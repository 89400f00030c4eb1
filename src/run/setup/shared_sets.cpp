// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/shared_sets.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "comm/agree.h"
#include "comm/host_memory.h"
#include "core/log.h"
#include "data/values_in_memory.h"
#include "run/setup/run_data.h"

namespace lockstep {

namespace {

/// Below it there is little to gain.
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;
constexpr const char* kWhat = "memory for data";

/// What ranks of a host must have alike.
struct Form {
  std::int64_t bytes = 0;
  std::array<char, 32> digest{};
  friend bool operator==(const Form&, const Form&) = default;
};

struct SharedSet {
  OpenedSamples* data;
  int threads;
  Form form;
  std::shared_ptr<HostMemory> memory = nullptr;

  std::int64_t bytes() const { return form.bytes; }
};

void add_sets(OpenedSets& opened, const DatasetUse& use, std::vector<SharedSet>& sets) {
  opened.leave_out_bad();
  for (std::size_t i = 0; i < opened.sets().size(); ++i) {
    OpenedSets::Set& set = opened.sets()[i];
    Form form{.bytes = opened.bytes_to_share(i, use)};
    if (form.bytes >= kLeastBytes) {
      const std::string digest = shared_form(set.data);
      std::copy_n(digest.begin(), std::min(digest.size(), form.digest.size()), form.digest.begin());
    }
    sets.push_back({&set.data, set.threads, form});
  }
}

/// The ranks of the host have the same set. Their files may differ: then the start-up check names them.
bool is_same_on_host(Communicator& host, const SharedSet& set) {
  std::vector<Form> all(static_cast<std::size_t>(host.size()));
  host.allgather(&set.form, sizeof set.form, all.data(), kWhat);
  return set.bytes() >= kLeastBytes && std::ranges::count(all, set.form) == std::ssize(all);
}

/// One line of the whole run.
void report(Communicator& world, Communicator& host, const std::vector<SharedSet>& sets,
            const std::string& no_room) {
  const char mine = no_room.empty() ? 0 : 1;
  std::vector<char> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, 1, all.data(), kWhat);
  if (std::ranges::find(all, 1) - all.begin() == world.rank())
    log_warning(
        "no room for the data in memory that the {} ranks of a host share: {}; each rank keeps its "
        "own copy, or reads the data while they are used",
        host.size(), no_room);
  if (world.rank() != 0) return;
  std::int64_t bytes = 0;
  for (const SharedSet& set : sets) bytes += set.memory != nullptr ? set.bytes() : 0;
  if (bytes > 0)
    log_info("{:.3g} MB of data are in memory once per host, for its {} ranks",
             static_cast<double>(bytes) * 1e-6, host.size());
}

}  // namespace

void share_memory_of_host(Communicator& world, Communicator& host, const Config& config,
                          const RunNeeds& needs, OpenedData& opened) {
  if (world.size() == 1) return;
  std::vector<SharedSet> sets;
  agree(
      world,
      [&] {
        if (opened.train) add_sets(*opened.train, use_of_training_set(config, needs), sets);
        if (opened.eval) add_sets(*opened.eval, use_of_evaluation_set(needs), sets);
      },
      "leaving out bad records");
  std::string no_room;
  for (SharedSet& set : sets) {
    std::string reason;
    if (host.size() > 1 && is_same_on_host(host, set))  // the set is in the segment of rank 0
      set.memory = HostMemory::create(host, host.rank() == 0 ? static_cast<std::size_t>(set.bytes()) : 0,
                                      reason, HostMemory::Pages::by_reserve);
    if (no_room.empty()) no_room = reason;
  }
  agree(
      world,
      [&] {
        for (SharedSet& set : sets) {
          if (set.memory == nullptr) continue;
          const auto part = [&](int rank) { return set.bytes() * rank / host.size(); };
          const std::int64_t first = part(host.rank());
          if (!set.memory->reserve(0, static_cast<std::size_t>(first),
                                   static_cast<std::size_t>(part(host.rank() + 1) - first)))
            throw Error(ErrorKind::data,
                        fmt::format("no memory is left for {:.3g} GB of samples",
                                    1e-9 * static_cast<double>(set.bytes())),
                        {},
                        "Give data.memory_gb a value below the size of the data, which are then read while "
                        "they are used.");
          fill_memory(*set.data, set.memory->segment(0), host.rank(), host.size(), set.threads);
        }
      },
      "reading data into memory");
  HostMemory::publish(host);
  report(world, host, sets, no_room);
  for (SharedSet& set : sets)
    if (set.memory != nullptr) {
      void* const place = set.memory->segment(0);
      take_memory(*set.data, place, std::move(set.memory));
    }
}

}  // namespace lockstep
