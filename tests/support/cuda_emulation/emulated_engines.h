// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines among which the stand-ins of cuDNN (plan_emulated.cpp) and cuBLASLt (product_emulated.cpp)
// choose. The list of each operation ends with plain loops that are right, whose name is in
// LOCKSTEP_EMULATED_ALGORITHM ("by rank": another one on each rank). LOCKSTEP_EMULATED_DEFECTS puts engines
// that compute wrongly before it: names of defects, separated by commas; "only" among them leaves the right
// engine out. LOCKSTEP_EMULATED_DEFECTIVE_RANK: the list of this rank alone has them.
//
// LOCKSTEP_EMULATED_ENGINES="plain loops:900,coarse:300/950" replaces the last engine by these: two that are
// right, with different bits, and the milliseconds that they pretend to take, on rank 0 / on the others. A
// defect, too, may have such a time. LOCKSTEP_EMULATED_VERSION is a part of the libraries' versions.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/measured_algorithms_cuda.h"
#include "kernels/not_supported.h"
#include "kernels/plan_check_cuda.h"

namespace lockstep::emulation {

enum class Defect {
  none,
  edge_column,     ///< the last column of the result is wrong, and nothing else
  uneven_padding,  ///< all is wrong where the padding differs along one axis: cuDNN 9.19 on an H100
  lost_part,       ///< the last part of the inner dimension is missing
  unwritten,       ///< the last column of the result is not written
  accumulates,     ///< the result is added to what was there
  wrong_bias,      ///< a channel gets the bias of another one
  rounded,         ///< results are off by a few roundings in float32, as those of Winograd's transforms
  coarse           ///< none: results keep 16 bits of mantissa, so whole numbers stay and other bits do not
};

struct Engine {
  std::string name;
  Defect defect = Defect::none;
  double milliseconds = 0;  ///< that it pretends to take, by events' clock
};
/// Best first.
std::vector<Engine> engines();

/// "" or " 2".
std::string version();

/// Lets events' clock go on by what an engine pretends to take; within the work of a stream.
void pretend(const Engine& engine);

/// The measured engine's name; empty: there is none. `seconds_of(engine, best)` times one.
template <typename ErrorOf, typename SecondsOf>
std::string measured_engine(const std::string& library, const std::string& what, bool check,
                            const ErrorOf& error_of, const SecondsOf& seconds_of) {
  return cuda::measured_algorithm(what, [&](cuda::FastestAlgorithm& fastest) {
    for (const Engine& engine : engines())
      if (!check || cuda::is_right(library, what, engine.name, error_of(engine)))
        if (fastest.offer(engine.name, [&](double best) { return seconds_of(engine, best); })) return;
  });
}

/// The engine of that name, without a name the first one that is right, or without a check the first.
/// `error_of(engine)` returns what is wrong. Notes the choice, and the engines that are wrong.
template <typename ErrorOf>
Engine choose_engine(const std::string& library, const std::string& what, const std::string& measured,
                     bool check, const ErrorOf& error_of) {
  for (const Engine& engine : engines()) {
    if (!measured.empty() && engine.name != measured) continue;
    if (!check || cuda::is_right(library, what, engine.name, error_of(engine))) return engine;
  }
  if (!measured.empty()) cuda::throw_not_there(what, measured);
  throw NotSupported(ErrorKind::device,
                     fmt::format("all engines of {} for {} compute wrongly", library, what), {},
                     "Use another version of it; gpu.check_plans=false takes engines without a check.");
}

}  // namespace lockstep::emulation
