// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/rank_place.h"

#include <optional>

#include "comm/agree.h"
#include "run/setup/run_size.h"

namespace lockstep {

RankPlace place_of_rank(CommEnvironment& environment, const Config& config) {
  const CommEnvironment::LocalRanks local = environment.local_ranks();
  std::optional<ComputeDevice> device;
  agree(
      environment.world(), [&] { device.emplace(open_device(config, local.rank)); }, "opening the device");
  RankPlace place{.device = *device, .ranks_on_host = local.count, .cores = cores_per_rank(local.count)};
  place.device_table = device_table(environment.world(), place.device, &place.shares_gpus);
  return place;
}

}  // namespace lockstep
