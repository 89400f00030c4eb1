// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The files of a job's data sets, copied to a disk of each node before they are opened (data.stage_to). The
// ranks of a node copy different pieces of them. Afterwards each rank opens the copies, and messages name the
// files themselves (io/staged_files.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/environment.h"
#include "core/function_ref.h"
#include "io/stage_folder.h"
#include "run/sections/config.h"

namespace lockstep {

class DataStage {
 public:
  /// All ranks. Copies the files; nothing if data.stage_to is not given. Ends early, with nothing copied, if
  /// a signal asks a rank to stop. Errors are the same on all ranks.
  DataStage(CommEnvironment& environment, const Config& config, const std::string& run_dir);
  /// The copies are removed, unless they are kept or other ranks may still read them.
  ~DataStage();
  DataStage(const DataStage&) = delete;
  DataStage& operator=(const DataStage&) = delete;

  /// Returns body(), which uses the copies.
  int run(FunctionRef<int()> body);

 private:
  struct Work;
  bool wanted_everywhere() const;
  void stage(const Config& config, const std::string& run_dir);
  void share_folder(const Config& config, const std::string& run_dir);
  void share_origins(const Config& config, Work& work);
  bool copy(Work& work);
  void report(const Work& work);

  CommEnvironment& environment_;
  const StageOptions options_;
  std::unique_ptr<Communicator> host_;   ///< the ranks of this node
  std::string place_, path_;             ///< the folder that the user names; that of the copies
  std::unique_ptr<StageFolder> folder_;  ///< on the first rank of a node
  std::unique_ptr<StageUse> use_;
};

}  // namespace lockstep
