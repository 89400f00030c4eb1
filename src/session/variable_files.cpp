// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/variable_files.h"

#include <set>

#include "core/error.h"
#include "core/name_list.h"
#include "io/checkpoint_names.h"
#include "io/checkpoint_tools.h"
#include "model/variable_store.h"
#include "session/agree_shared.h"
#include "session/run_state.h"
#include "session/warm_start.h"

namespace lockstep {

namespace {

constexpr std::string_view kGroup = "variables/";

void refuse_unused(const std::vector<std::string>& unused, const std::vector<std::string>& names) {
  if (unused.empty()) return;
  const std::string near = nearest(unused.front(), std::vector<std::string_view>(names.begin(), names.end()));
  throw Error(ErrorKind::usage, fmt::format("no variable of the model matches '{}'", unused.front()), "",
              near.empty() ? fmt::format("Its variables: {}.", name_list(names))
                           : fmt::format("Did you mean {}? Its variables: {}.", near, name_list(names)));
}

}  // namespace

void save_variables(Communicator& control, const VariableStore& variables, const CheckpointHeader& header,
                    const std::string& path, const VariableChoice& choice) {
  agree_shared(control, "saving variables", [&] {
    const NamePatterns patterns(choice.variables);
    const NameRules rules(choice.names);
    std::vector<CheckpointTensor> tensors = state_tensors(variables, nullptr);
    std::vector<std::string> names;
    for (const CheckpointTensor& tensor : tensors) names.push_back(tensor.path.substr(kGroup.size()));
    refuse_unused(patterns.unused(names), names);
    refuse_unused(rules.unused(names), names);
    std::set<std::string> taken;
    std::vector<CheckpointTensor> chosen;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!patterns.matches(names[i])) continue;
      tensors[i].path = std::string(kGroup) + new_name(rules, names[i], taken, "the list of names");
      chosen.push_back(std::move(tensors[i]));
    }
    if (control.rank() != 0) return;
    CheckpointHeader weights = header;
    weights.weights_only = true;
    write_checkpoint(path, std::move(weights), chosen);
  });
}

void restore_variables(Communicator& control, VariableStore& variables, const std::string& path,
                       const VariableChoice& choice) {
  shared([&] {
    warm_start(control,
               {.checkpoint = path,
                .variables = NamePatterns(choice.variables),
                .rename = NameRules(choice.names),
                .where = path},
               variables);
  });
}

}  // namespace lockstep
