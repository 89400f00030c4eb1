// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines among which the stand-ins of cuDNN (plan_emulated.cpp) and cuBLASLt (product_emulated.cpp)
// choose. The list of each operation ends with plain loops that are right, whose name is in
// LOCKSTEP_EMULATED_ALGORITHM ("by rank": another one on each rank). LOCKSTEP_EMULATED_DEFECTS puts engines
// that compute wrongly before it: names of defects, separated by commas; "only" among them leaves the right
// engine out. LOCKSTEP_EMULATED_DEFECTIVE_RANK: the list of this rank alone has them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/not_supported.h"

namespace lockstep::emulation {

enum class Defect {
  none,
  edge_column,     ///< the last column of the result is wrong, and nothing else
  uneven_padding,  ///< all is wrong where the padding differs along one axis: cuDNN 9.19 on an H100
  lost_part,       ///< the last part of the inner dimension is missing
  unwritten,       ///< the last column of the result is not written
  accumulates,     ///< the result is added to what was there
  wrong_bias       ///< a channel gets the bias of another one
};

struct Engine {
  std::string name;
  Defect defect = Defect::none;
};
/// Best first.
std::vector<Engine> engines();

/// The first engine that is right, or without a check the first. `error_of(engine)` returns what is wrong.
/// Notes the choice, and the engines that are wrong.
template <typename ErrorOf>
Engine choose_engine(const std::string& library, const std::string& what, bool check,
                     const ErrorOf& error_of) {
  for (const Engine& engine : engines()) {
    const std::string error = check ? error_of(engine) : std::string();
    if (error.empty()) return engine;
    cuda::note_wrong_algorithm(library, what, engine.name, error);
  }
  throw NotSupported(ErrorKind::device,
                     fmt::format("all engines of {} for {} compute wrongly", library, what), {},
                     "Use another version of it; gpu.check_plans=false takes engines without a check.");
}

}  // namespace lockstep::emulation
