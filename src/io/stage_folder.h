// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The folder of a run's copies of data files on a node: <place>/lockstep-stage-<key>[-N].
//
//   lock      held by the first rank of the node, exclusively: it claims the folder
//   users     held by each rank of the node, shared: a folder whose first rank was killed may still be in use
//   keep      the folder stays when nobody uses it (data.stage_keep)
//   pieces.R  what rank R of the node has copied (stage_manifest.h)
//   files/    the copies (staged_files.h)
//
// A folder whose locks are free and that has no `keep` is what a killed job has left. The operating system
// frees the locks of a process that ends, in whatever way.
//
// A process that MPI has started must not fork, so nothing removes the folder of a killed job but the next
// job. An error of a single rank (network, device) leaves the folder, because other ranks may still read from
// it.
#pragma once

#include <string>

#include "io/file_descriptor.h"

namespace lockstep {

/// `text` with $NAME and ${NAME} replaced by variables of the environment. Throws Error(config) if one is not
/// set, or if the result is no absolute path. `where`: of the option, for messages.
std::string expanded_stage_place(const std::string& text, const std::string& where);

/// The claim of a node's first rank.
class StageFolder {
 public:
  /// Takes the folder of `key` in `place`, with what it contains; another one if that is in use. Removes what
  /// killed jobs of this user have left in `place`. Throws Error(config) if `place` is no folder, Error(data)
  /// if nothing can be made in it or locks do not work there.
  StageFolder(std::string place, const std::string& key, bool keep);
  /// Removes the folder with all that is in it, unless it is kept or left.
  ~StageFolder();
  StageFolder(const StageFolder&) = delete;
  StageFolder& operator=(const StageFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Other ranks may still read: the folder stays, for the next job on this node.
  void leave() { removes_ = false; }
  /// It failed: removed even if it was to be kept.
  void give_up() { removes_ = true; }

 private:
  std::string path_;
  FileDescriptor lock_;
  bool removes_ = true;
};

/// Shows that this process uses a claimed folder, for its life.
class StageUse {
 public:
  explicit StageUse(const std::string& folder);

 private:
  FileDescriptor users_;
};

}  // namespace lockstep
