// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/local_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

#include "comm/agree.h"
#include "comm/host_memory.h"
#include "comm/startup_check.h"
#include "core/buffer.h"
#include "core/error.h"
#include "core/log.h"
#include "data/program_input.h"
#include "data/values_in_memory.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "samples of local inputs";
/// Messages have up to this many bytes, so that no exchange takes long.
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;
/// Below it ranks of a host have copies of their own.
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;

/// What the samples of a rank look like. Sent as it is.
struct LocalForm {
  std::int64_t size = 0;
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  std::int64_t axes = 0, type = 0, label_kind = 0, columns = 0;

  explicit LocalForm(const StoredForm& of = {})
      : size(of.size),
        axes(of.feature_shape.rank()),
        type(static_cast<std::int64_t>(of.feature_dtype)),
        label_kind(static_cast<std::int64_t>(of.label_kind)),
        columns(of.num_label_columns) {
    std::ranges::copy(of.feature_shape.extents(), extents.begin());
  }
  StoredForm form() const {
    StoredForm of{.size = size,
                  .feature_shape = Shape(std::span(extents).first(static_cast<std::size_t>(axes))),
                  .feature_dtype = static_cast<DType>(type),
                  .num_label_columns = columns,
                  .label_step = columns,
                  .label_kind = static_cast<LabelKind>(label_kind)};
    of.feature_step = of.values_per_sample();
    return of;
  }
  bool is_like(const LocalForm& other) const {
    return extents == other.extents && axes == other.axes && type == other.type &&
           label_kind == other.label_kind && columns == other.columns;
  }
  std::string text() const {
    const StoredForm all = form();
    return fmt::format("{} {} with {}", all.feature_shape.to_string(), name_of(all.feature_dtype),
                       all.label_kind == LabelKind::none      ? std::string("no labels")
                       : all.label_kind == LabelKind::indices ? std::string("class indices")
                                                              : fmt::format("{} targets", columns));
  }
};

std::string place_of(const std::string& name) { return fmt::format("input {}", name); }

/// "input train, sample 17 of rank 2".
std::string sample_place(const std::string& name, std::int64_t sample, int rank) {
  return fmt::format("{}, sample {} of rank {}", place_of(name), sample, rank);
}

/// The samples of all ranks: how many, and where those of each rank begin.
struct Whole {
  StoredForm form;                  ///< of all samples
  std::vector<std::int64_t> first;  ///< by rank; then the number of all samples
};

/// The same on all ranks, or the same error.
Whole whole_of(const std::string& name, const std::vector<LocalForm>& all) {
  const auto with_samples = [](const LocalForm& form) { return form.size > 0; };
  const auto front = std::ranges::find_if(all, with_samples);
  if (front == all.end())
    throw Error(ErrorKind::data, "no rank has samples", place_of(name), "Give samples on one rank or more.");
  const auto other = std::ranges::find_if(
      all, [&](const LocalForm& form) { return form.size > 0 && !form.is_like(*front); });
  if (other != all.end())
    throw Error(ErrorKind::data,
                fmt::format("the samples of rank {} are {}, those of rank {} {}", front - all.begin(),
                            front->text(), other - all.begin(), other->text()),
                place_of(name), "Give samples of one type and shape, with the same labels, on all ranks.");
  Whole whole{.form = front->form(), .first = {0}};
  for (const LocalForm& form : all) whole.first.push_back(whole.first.back() + form.size);
  whole.form.size = whole.first.back();
  return whole;
}

/// Memory for all samples, and who writes what there.
struct Place {
  std::byte* memory = nullptr;
  std::shared_ptr<const void> owner;
  std::vector<int> holder;  ///< by rank: the one in whose memory the rank writes its samples itself
};

/// Memory that the ranks of a host share, or memory of this rank. All ranks.
Place place_for(Communicator& world, const std::string& name, const Whole& whole) {
  const std::int64_t bytes = bytes_in_memory(whole.form);
  const std::unique_ptr<Communicator> host = world.split_by_host("samples");
  std::string reason;
  std::shared_ptr<HostMemory> shared;
  if (host->size() > 1 && bytes >= kLeastBytes)
    shared = HostMemory::create(*host, host->rank() == 0 ? static_cast<std::size_t>(bytes) : 0, reason,
                                HostMemory::Pages::by_reserve);
  if (!reason.empty() && host->rank() == 0)
    log_warning(
        "no room for the samples of input {} in memory that the {} ranks of a host share: {}; each "
        "rank keeps a copy",
        name, host->size(), reason);
  Place place;
  agree(
      world,
      [&] {
        if (shared == nullptr) {
          check_memory(place_of(name), whole.form.size,
                       static_cast<double>(bytes) / static_cast<double>(whole.form.size));
          const auto own = std::make_shared<const Buffer>(cpu_device(), static_cast<std::size_t>(bytes));
          place.memory = static_cast<std::byte*>(own->data());
          place.owner = own;
        } else if (host->rank() == 0 && !shared->reserve(0, 0, static_cast<std::size_t>(bytes))) {
          throw Error(ErrorKind::data,
                      fmt::format("no memory is left for {:.3g} GB of samples of all ranks",
                                  1e-9 * static_cast<double>(bytes)),
                      place_of(name), "A host keeps the samples of all ranks: give fewer.");
        }
      },
      "memory for local samples");
  int holder = world.rank();
  if (shared != nullptr) {
    host->broadcast(&holder, sizeof holder, 0, kWhat);
    place.memory = shared->segment(0);
    place.owner = shared;
  }
  place.holder.resize(static_cast<std::size_t>(world.size()));
  world.allgather(&holder, sizeof holder, place.holder.data(), kWhat);
  return place;
}

/// Brings a part of the samples (features, or labels) to all holders: `unit` bytes of each sample, which lie
/// at `mine` on their rank, and one after the other at `all` in memory. All ranks.
void bring(Communicator& world, const Place& place, const std::vector<std::int64_t>& first, std::int64_t unit,
           const void* mine, std::byte* all) {
  const auto ranks = static_cast<std::size_t>(world.size()), self = static_cast<std::size_t>(world.rank());
  const auto bytes = [&](std::size_t rank) { return (first[rank + 1] - first[rank]) * unit; };
  if (bytes(self) > 0) std::memcpy(all + first[self] * unit, mine, static_cast<std::size_t>(bytes(self)));
  std::vector<int> holders = place.holder;
  std::ranges::sort(holders);
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  const bool holds = std::ranges::binary_search(holders, world.rank());
  std::int64_t longest = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, bytes(rank));
  for (std::int64_t done = 0; done < longest; done += kPieceBytes) {
    const auto piece = [&](std::size_t rank) {
      return static_cast<std::size_t>(std::clamp<std::int64_t>(bytes(rank) - done, 0, kPieceBytes));
    };
    std::vector<OutMessage> out;
    std::vector<InMessage> in;
    if (piece(self) > 0)
      for (const int holder : holders)
        if (holder != place.holder[self])
          out.push_back({static_cast<const std::byte*>(mine) + done, piece(self), holder});
    for (std::size_t rank = 0; holds && rank < ranks; ++rank)
      if (place.holder[rank] != world.rank() && piece(rank) > 0)
        in.push_back({all + first[rank] * unit + done, piece(rank), static_cast<int>(rank)});
    world.exchange_many(out, in, kWhat);
  }
}

PlacedPointer gathered(Communicator& world, const std::string& name, const PlacedPointer& mine) {
  const LocalForm form(mine->form);
  std::vector<LocalForm> all(static_cast<std::size_t>(world.size()));
  world.allgather(&form, sizeof form, all.data(), kWhat);
  const Whole whole = whole_of(name, all);
  if (world.size() == 1) return mine;  // in place
  const Place place = place_for(world, name, whole);
  auto samples = std::make_shared<PlacedSamples>();
  samples->form = whole.form;
  samples->owner = place.owner;
  const SampleRoom room = places_in(whole.form, place.memory);
  samples->at = room;
  bring(world, place, whole.first, whole.form.sample_bytes(), mine->at.features,
        static_cast<std::byte*>(room.features));
  if (room.label_indices != nullptr)
    bring(world, place, whole.first, whole.form.num_label_columns * std::int64_t{sizeof(std::int32_t)},
          mine->at.label_indices, reinterpret_cast<std::byte*>(room.label_indices));
  if (room.label_rows != nullptr)
    bring(world, place, whole.first, whole.form.num_label_columns * std::int64_t{sizeof(float)},
          mine->at.label_rows, reinterpret_cast<std::byte*>(room.label_rows));
  HostMemory::publish(world);
  samples->where = [name, first = whole.first](std::int64_t sample) {
    const auto rank = std::ranges::upper_bound(first, sample) - first.begin() - 1;
    return sample_place(name, sample - first[static_cast<std::size_t>(rank)], static_cast<int>(rank));
  };
  return samples;
}

}  // namespace

std::vector<LocalPointer> local_samples_of(const Input& samples, const Input* others, bool are_apart) {
  std::vector<LocalPointer> all = samples.local_samples();
  if (others == nullptr) return all;
  const std::size_t count = all.size();
  for (LocalPointer& other : others->local_samples()) {
    for (std::size_t i = 0; are_apart && i < count; ++i)
      if (all[i]->name() == other->name())
        throw Error(
            ErrorKind::config,
            fmt::format("the training and the evaluation samples are both called '{}'", other->name()), "",
            "Give each Input::local() a name of its own.");
    all.push_back(std::move(other));
  }
  return all;
}

GatheredInputs::~GatheredInputs() {
  for (const std::string& name : names_) forget_program_input(name);
}

void GatheredInputs::add(const std::string& name, const PlacedPointer& samples) {
  set_program_input(name, [samples] { return parts_of(samples); });
  names_.push_back(name);
}

GatheredInputs gather_local_inputs(Communicator& world, const std::vector<LocalPointer>& inputs) {
  std::map<std::string, LocalPointer> by_name;
  for (const LocalPointer& input : inputs) by_name[input->name()] = input;
  std::string names;
  for (const auto& [name, input] : by_name) names += name + "\n";
  require_same(world, std::vector<NamedText>{{"the names of local inputs", names}});
  GatheredInputs gathered_inputs;
  for (const auto& [name, input] : by_name) {
    PlacedPointer mine;
    agree(
        world, [&, &local = *input] { mine = local.place(); }, "samples of this rank");
    gathered_inputs.add(name, gathered(world, name, mine));
  }
  return gathered_inputs;
}

}  // namespace lockstep
