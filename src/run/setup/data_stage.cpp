// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/data_stage.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>

#include "comm/agree.h"
#include "comm/flight_recorder.h"
#include "comm/shared_error.h"
#include "core/cpu.h"
#include "core/hash.h"
#include "core/in_parallel.h"
#include "core/log.h"
#include "core/timer.h"
#include "data/stage_options.h"
#include "io/stage_copy.h"
#include "io/stage_manifest.h"
#include "io/staged_files.h"
#include "session/interruption.h"

namespace lockstep {

namespace {

/// Ranks copy for so long between two exchanges: how long a wait for others is, and until a signal acts.
constexpr double kRoundSeconds = 1;
constexpr double kSecondsBetweenReports = 30;
constexpr std::size_t kNodesInLog = 8;
constexpr std::int64_t kBlockBytes = 4096;    ///< a file takes whole blocks
constexpr std::int64_t kManifestBytes = 160;  ///< a line

/// What the ranks tell each other after a round.
struct Round {
  std::int64_t bytes_left = 0, pieces_left = 0;
  bool interrupted = false;
};

/// What the first rank of a node tells at the end.
struct NodeReport {
  std::int64_t files = 0, bytes = 0, bytes_copied = 0;
  double seconds = 0;
  bool is_first = false;
};

std::string size_text(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return size < 1e9 ? fmt::format("{:.3g} MB", size * 1e-6) : fmt::format("{:.2f} GB", size * 1e-9);
}

std::string text_of(const NodeReport& node) {
  const std::string there =
      node.bytes_copied < node.bytes
          ? fmt::format("; {} were there already", size_text(node.bytes - node.bytes_copied))
          : "";
  return fmt::format("{} files, {}, in {:.1f} s ({:.0f} MB/s){}", node.files, size_text(node.bytes),
                     node.seconds,
                     static_cast<double>(node.bytes_copied) * 1e-6 / std::max(node.seconds, 1e-3), there);
}

}  // namespace

struct DataStage::Work {
  std::vector<StagedFile> files;
  std::vector<StagePiece> pieces;
  std::optional<StagedPieces> known;
  std::optional<StageManifest> manifest;
  std::optional<StageCopier> copier;
  Timer timer;
  /// This rank copies pieces rank, rank + size, ... of the node's.
  std::atomic<std::int64_t> next = 0;
  std::atomic<std::int64_t> bytes_done = 0, bytes_copied = 0;

  std::int64_t bytes() const {
    std::int64_t all = 0;
    for (const StagedFile& file : files) all += file.origin.bytes;
    return all;
  }
  std::int64_t bytes_to_copy() const {
    std::int64_t bytes = kBlockBytes;
    for (const StagePiece& piece : pieces) {
      const StagedFile& file = files[static_cast<std::size_t>(piece.file)];
      if (known->checksum(file.name, file.origin, piece.offset, piece.bytes)) continue;
      bytes += (piece.bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes + kManifestBytes;
    }
    return bytes;
  }
};

DataStage::DataStage(CommEnvironment& environment, const Config& config, const std::string& run_dir)
    : environment_(environment), options_(config.data.stage) {
  if (!wanted_everywhere()) return;
  set_long_phase("staging data files");
  try {
    shared([&] { stage(config, run_dir); });
  } catch (const SharedError&) {
    if (folder_) folder_->give_up();
    throw;
  } catch (...) {
    if (folder_ && environment_.world().size() > 1) folder_->leave();
    throw;
  }
}

DataStage::~DataStage() { forget_staged_files(); }

int DataStage::run(FunctionRef<int()> body) {
  try {
    return body();
  } catch (const SharedError&) {
    throw;
  } catch (...) {  // the other ranks are still at work
    if (folder_ && environment_.world().size() > 1) folder_->leave();
    throw;
  }
}

/// The configurations of the ranks are compared later.
bool DataStage::wanted_everywhere() const {
  Communicator& world = environment_.world();
  const char mine = options_.to.empty() ? 0 : 1;
  std::vector<char> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, 1, all.data(), "whether data files are copied");
  const auto count = static_cast<int>(std::ranges::count(all, 1));
  if (count != 0 && count != world.size())
    throw SharedError(Error(ErrorKind::config,
                            fmt::format("data.stage_to is given on {} of {} ranks", count, world.size()),
                            options_.where, "Start all ranks with the same configuration."));
  return count != 0;
}

void DataStage::stage(const Config& config, const std::string& run_dir) {
  Communicator& world = environment_.world();
  Work work;
  agree(
      world,
      [&] {
        if (config.data.failure) throw Error(*config.data.failure);
        place_ = expanded_stage_place(options_.to, options_.where);
        for (std::string& path : files_of_sets(config.data, config.base_directory)) {
          std::string name = staged_name(path);
          work.files.push_back({std::move(path), std::move(name)});
        }
      },
      "listing the data files");
  host_ = world.split_by_host("data files");
  share_folder(config, run_dir);
  share_origins(config, work);
  agree(
      world,
      [&] {
        work.known.emplace(path_);
        work.pieces = stage_pieces(work.files);
        const std::int64_t needed = work.bytes_to_copy();
        if (host_->rank() == 0) {
          prepare_stage(path_, work.files, *work.known);
          if (!work.files.empty()) require_stage_room(place_, needed, work.files);
        }
        work.copier.emplace(StageCopier::Options{path_, options_.verify, needed}, *work.known,
                            work.manifest.emplace(path_, host_->rank()));
      },
      "preparing the folder of data files");
  if (!copy(work)) return;
  agree(
      world,
      [&] {
        for (auto i = static_cast<std::size_t>(host_->rank()); i < work.files.size();
             i += static_cast<std::size_t>(host_->size()))
          work.copier->check_size(work.files[i]);
      },
      "checking the copies of data files");
  std::vector<std::string> paths;
  for (StagedFile& file : work.files) paths.push_back(std::move(file.path));
  use_staged_files(path_ + "/files", paths);
  report(work);
}

/// The first rank of each node claims a folder, and all of them show that they use it.
void DataStage::share_folder(const Config&, const std::string& run_dir) {
  agree(
      environment_.world(),
      [&] {
        if (host_->rank() != 0) return;
        const std::string run = std::filesystem::absolute(run_dir).lexically_normal().string();
        const std::string key = Digest().add(std::string_view(run)).add(std::string_view(host_name())).hex();
        folder_ = std::make_unique<StageFolder>(place_, key.substr(0, 16), options_.keep);
        path_ = folder_->path();
      },
      "making the folder of data files");
  auto length = static_cast<std::int64_t>(path_.size());
  host_->broadcast(&length, sizeof length, 0, "the folder of data files");
  path_.resize(static_cast<std::size_t>(length));
  host_->broadcast(path_.data(), path_.size(), 0, "the folder of data files");
  agree(
      environment_.world(), [&] { use_ = std::make_unique<StageUse>(path_); },
      "opening the folder of data files");
}

/// Each rank of a node looks at a part of the files.
void DataStage::share_origins(const Config& config, Work& work) {
  struct Listing {
    std::int64_t count;
    std::uint64_t hash;
  };
  Hash64 names;
  for (const StagedFile& file : work.files) names.add(file.name.data(), file.name.size());
  const Listing mine{static_cast<std::int64_t>(work.files.size()), names.value()};
  const auto ranks = static_cast<std::size_t>(host_->size());
  std::vector<Listing> all(ranks);
  host_->allgather(&mine, sizeof mine, all.data(), "the number of data files");
  const std::size_t share = (work.files.size() + ranks - 1) / ranks;
  const std::size_t first = static_cast<std::size_t>(host_->rank()) * share;
  std::vector<FileOrigin> own(share), origins(share * ranks);
  agree(
      environment_.world(),
      [&] {
        for (const Listing& other : all)
          if (other.count != mine.count || other.hash != mine.hash)
            throw Error(ErrorKind::data,
                        fmt::format("ranks of one node find different data files ({} and {})", mine.count,
                                    other.count),
                        config.base_directory, "Start when the files are complete.");
        for (std::size_t i = first; i < std::min(first + share, work.files.size()); ++i)
          own[i - first] = origin_of_file(work.files[i].path);
        check_stage_files(config.data, config.base_directory, host_->rank(), host_->size());
      },
      "looking at the data files");
  if (share == 0) return;
  host_->allgather(own.data(), share * sizeof(FileOrigin), origins.data(), "sizes of data files");
  for (std::size_t i = 0; i < work.files.size(); ++i) work.files[i].origin = origins[i];
}

/// In rounds, so that an error or a signal of one rank ends the work of all. False: a signal.
bool DataStage::copy(Work& work) {
  Communicator& world = environment_.world();
  const std::int64_t ranks = host_->size(), first = host_->rank();
  const auto count = static_cast<std::int64_t>(work.pieces.size());
  const std::int64_t own = first < count ? (count - first - 1) / ranks + 1 : 0;
  std::int64_t own_bytes = 0;
  for (std::int64_t i = 0; i < own; ++i)
    own_bytes += work.pieces[static_cast<std::size_t>(first + i * ranks)].bytes;
  const auto copy_until = [&](const Timer& round) {
    std::vector<char> buffer;
    while (round.seconds() < kRoundSeconds && !signal_request().any()) {
      const std::int64_t next = work.next.fetch_add(1);
      if (next >= own) return;
      const StagePiece& piece = work.pieces[static_cast<std::size_t>(first + next * ranks)];
      if (work.copier->copy(work.files[static_cast<std::size_t>(piece.file)], piece, buffer))
        work.bytes_copied += piece.bytes;
      work.bytes_done += piece.bytes;
    }
  };
  std::vector<Round> all(static_cast<std::size_t>(world.size()));
  std::int64_t bytes_at_start = 0;
  Timer since_report;
  for (bool is_first = true;; is_first = false) {
    if (!is_first)
      agree(
          world,
          [&] {
            const Timer round;
            in_parallel(options_.threads, options_.threads, [&](std::int64_t) { copy_until(round); });
          },
          "copying data files");
    const Round mine{own_bytes - work.bytes_done, own - std::min(own, work.next.load()),
                     signal_request().any()};
    world.allgather(&mine, sizeof mine, all.data(), "progress of copying data files");
    std::int64_t bytes = 0, pieces = 0;
    bool interrupted = false;
    for (const Round& rank : all) {
      bytes += rank.bytes_left;
      pieces += rank.pieces_left;
      interrupted = interrupted || rank.interrupted;
    }
    if (is_first) bytes_at_start = bytes;
    if (interrupted) return false;
    if (pieces == 0) return true;
    if (world.rank() == 0 && since_report.seconds() > kSecondsBetweenReports) {
      log_info("staging data files: {} of {} on all nodes", size_text(bytes_at_start - bytes),
               size_text(bytes_at_start));
      since_report.restart();
    }
  }
}

void DataStage::report(const Work& work) {
  Communicator& world = environment_.world();
  const std::int64_t copied = work.bytes_copied;
  std::vector<std::int64_t> of_ranks(static_cast<std::size_t>(host_->size()));
  host_->allgather(&copied, sizeof copied, of_ranks.data(), "sizes of copied data files");
  NodeReport mine{.files = static_cast<std::int64_t>(work.files.size()),
                  .bytes = work.bytes(),
                  .seconds = work.timer.seconds(),
                  .is_first = host_->rank() == 0};
  for (const std::int64_t bytes : of_ranks) mine.bytes_copied += bytes;
  std::vector<NodeReport> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, all.data(), "report of copied data files");
  if (world.rank() != 0) return;
  std::vector<std::size_t> nodes;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].is_first) nodes.push_back(rank);
  std::ranges::stable_sort(nodes, {}, [&](std::size_t rank) { return -all[rank].seconds; });
  for (std::size_t i = 0; i < std::min(nodes.size(), kNodesInLog); ++i)
    log_info("staged data files on {} in {}: {}", environment_.hosts()[nodes[i]], place_,
             text_of(all[nodes[i]]));
  if (nodes.size() > kNodesInLog)
    log_info("and on {} more nodes, all of them faster: the fastest took {:.1f} s",
             nodes.size() - kNodesInLog, all[nodes.back()].seconds);
}

}  // namespace lockstep
