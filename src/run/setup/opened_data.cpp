// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/opened_data.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "comm/agree.h"
#include "core/in_parallel.h"
#include "core/log.h"
#include "core/range.h"
#include "core/timer.h"
#include "session/run_bad_records.h"

namespace lockstep {

namespace {

constexpr double kProgressSeconds = 10;
constexpr const char* kWhat = "bad records";

/// Those that this rank finds in its parts.
std::vector<BadRecord> search(const Communicator& world, const OpenedSets::Set& set, int threads) {
  BadRecordScan scan(set.data, set.most());
  const auto part_of = [&](int rank) { return std::int64_t{scan.num_parts()} * rank / world.size(); };
  const Range own{part_of(world.rank()), part_of(world.rank() + 1)};
  std::vector<std::vector<BadRecord>> parts(static_cast<std::size_t>(own.size()));
  const Timer timer;
  std::atomic<std::int64_t> done{0}, said{0};
  in_parallel(std::min(threads, scan.most_threads()), own.size(), [&](std::int64_t i) {
    parts[static_cast<std::size_t>(i)] = scan.find(static_cast<int>(own.first + i));
    const std::int64_t now = ++done;
    std::int64_t reports = said;
    if (world.rank() == 0 && timer.seconds() > kProgressSeconds * static_cast<double>(reports + 1) &&
        said.compare_exchange_strong(reports, static_cast<std::int64_t>(timer.seconds() / kProgressSeconds)))
      log_info("search for bad records: {} of {} parts of rank 0", now, own.size());
  });
  std::vector<BadRecord> found;
  for (std::vector<BadRecord>& part : parts) std::ranges::move(part, std::back_inserter(found));
  return found;
}

/// The texts of all ranks, one after the other.
std::vector<std::string> gathered(Communicator& world, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const std::int64_t size = std::ssize(mine);
  std::vector<std::int64_t> sizes(ranks);
  world.allgather(&size, sizeof size, sizes.data(), kWhat);
  const auto most = static_cast<std::size_t>(*std::ranges::max_element(sizes));
  std::string padded = mine, all(most * ranks, '\0');
  padded.resize(most);
  world.allgather(padded.data(), most, all.data(), kWhat);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    texts.push_back(all.substr(rank * most, static_cast<std::size_t>(sizes[rank])));
  return texts;
}

std::vector<BadRecord> shared_search(Communicator& world, const OpenedSets::Set& set, int threads) {
  std::vector<BadRecord> mine;
  agree(
      world, [&] { mine = search(world, set, threads); }, "searching for bad records");
  const std::vector<BadRecordList> own{{"", "", std::move(mine)}};
  std::vector<BadRecord> all;
  for (const std::string& text : gathered(world, bad_records_text(own)))
    for (BadRecordList& list : bad_records_from_text(text, "a rank"))
      std::ranges::move(list.records, std::back_inserter(all));
  return all;
}

/// The text of the run's list, on all ranks.
std::string kept_text(Communicator& world, const std::string& run_dir) {
  std::string text;
  agree(
      world,
      [&] {
        if (world.rank() == 0) text = kept_bad_records(run_dir);
      },
      "reading the list of bad records");
  std::int64_t size = std::ssize(text);
  world.broadcast(&size, sizeof size, 0, kWhat);
  text.resize(static_cast<std::size_t>(size));
  world.broadcast(text.data(), text.size(), 0, kWhat);
  return text;
}

/// Only the last part of a path: data may lie elsewhere in another job.
std::string_view without_folder(std::string_view where) { return where.substr(where.find_last_of('/') + 1); }

/// The records that the run leaves out of a set.
std::vector<BadRecord> kept_records(const OpenedSets::Set& set, const BadRecordList& kept,
                                    const std::string& path) {
  constexpr const char* kAdvice = "Give the data of the run, or begin another run (--run-dir).";
  for (const BadRecord& record : kept.records)
    if (record.sample >= set.data.size() ||
        without_folder(set.data.where(record.sample)) != without_folder(record.where))
      throw Error(ErrorKind::data, fmt::format("sample {} of the run was {}", record.sample, record.where),
                  path, kAdvice);
  for (const BadRecord& record : set.data.parts().bad)
    if (!std::ranges::binary_search(kept.records, record.sample, {}, &BadRecord::sample))
      throw Error(ErrorKind::data, record.reason + ", which it was not when the run began", record.where,
                  kAdvice);
  return kept.records;
}

void take_kept(Communicator& world, OpenedSets& opened, const std::string& run_dir) {
  const std::string path = bad_records_path(run_dir);
  const std::string text = kept_text(world, run_dir);
  agree(
      world,
      [&] {
        const std::vector<BadRecordList> lists = bad_records_from_text(text, path);
        for (OpenedSets::Set& set : opened.sets()) {
          if (!set.bad_records.skip) continue;
          const auto list = std::ranges::find_if(lists, [&](const BadRecordList& candidate) {
            return candidate.set == "train" && candidate.input == set.name;
          });
          set.bad = kept_records(set, list != lists.end() ? *list : BadRecordList{}, path);
        }
      },
      "taking the list of bad records");
}

void share(Communicator& world, OpenedSets& opened, int threads) {
  for (OpenedSets::Set& set : opened.sets())
    if (set.to_scan()) {
      const Timer timer;
      set.take(shared_search(world, set, threads));
      if (world.rank() == 0)
        log_info("{} set: {} bad of {} records, found in {:.1f} s",
                 opened.is_evaluation() ? "evaluation" : "training", set.bad.size(), set.data.size(),
                 timer.seconds());
    }
}

}  // namespace

OpenedData open_data(const Config& config, bool train, bool eval, const Dataset* trained) {
  OpenedData data;
  if (train) data.train.emplace(config.data, false, config.base_directory);
  if (eval && config.data.failure) throw Error(*config.data.failure);
  if (eval && config.data.eval) data.eval.emplace(config.data, true, config.base_directory, trained);
  return data;
}

void share_bad_records(Communicator& world, OpenedData& data, const std::string& kept_in, int threads) {
  if (data.train && data.train->skips()) {
    if (kept_in.empty())
      share(world, *data.train, threads);
    else
      take_kept(world, *data.train, kept_in);
  }
  if (data.eval && data.eval->skips()) share(world, *data.eval, threads);
}

}  // namespace lockstep
