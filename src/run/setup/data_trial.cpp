// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/data_trial.h"

#include "comm/environment.h"

namespace lockstep {

void try_data_on_chief(Config& config, std::span<const std::vector<std::string>> files, DataTrial trial) {
  if (launcher_rank_hint() == 0) try_data_files(config.data, config.base_directory, files, trial);
}

}  // namespace lockstep
