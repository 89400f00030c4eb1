// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of Input::local(), whose samples exist on one rank each. When a call begins, and before a data
// set is opened, all ranks gather them: the samples of all ranks, in the order of the ranks, are then in
// memory once per host, where all of its ranks read them. So what follows (order of samples, normalisation,
// balance of classes, fingerprint) is as for one set that all ranks have, and has its bits.
//
// Why once, and not per batch: the communication is that of the thread that makes the call, so it needs no
// MPI level of its own and no step waits for it; a shuffled epoch takes samples from all ranks in any case.
// The price is that the set must fit into the memory of one host.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/placed_samples.h"
#include "comm/communicator.h"

namespace lockstep {

class LocalSamples {
 public:
  /// `place` gives the samples of this rank, which may be none.
  LocalSamples(std::string name, std::function<PlacedPointer()> place)
      : name_(std::move(name)), place_(std::move(place)) {}

  const std::string& name() const { return name_; }
  PlacedPointer place() const { return place_(); }

 private:
  std::string name_;
  std::function<PlacedPointer()> place_;
};
using LocalPointer = std::shared_ptr<const LocalSamples>;

/// Those of both sets of a call; `others` may be null. Throws Error(config) for a name that both have, if
/// `are_apart`: a training and an evaluation set.
std::vector<LocalPointer> local_samples_of(const Input& samples, const Input* others, bool are_apart);

/// Samples that the reader `program` knows by their names as long as this exists. Sets that are opened
/// meanwhile keep them.
class GatheredInputs {
 public:
  GatheredInputs() = default;
  GatheredInputs(GatheredInputs&& other) noexcept : names_(std::move(other.names_)) { other.names_.clear(); }
  GatheredInputs& operator=(GatheredInputs&& other) noexcept {
    names_.swap(other.names_);
    return *this;
  }
  ~GatheredInputs();

  void add(const std::string& name, const PlacedPointer& samples);

 private:
  std::vector<std::string> names_;
};

/// All ranks, which give the same names. Of several inputs of one name the last one counts. Errors of a rank
/// are those of all: Error(config) if names differ, Error(data) if samples do, if there are none at all, or
/// if memory is short.
GatheredInputs gather_local_inputs(Communicator& world, const std::vector<LocalPointer>& inputs);

}  // namespace lockstep
