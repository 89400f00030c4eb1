// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save(model.state_dict(), file): a ZIP file with a pickle and one member for each storage.
#pragma once

#include <string>

#include "exchange/foreign_tensor.h"

namespace lockstep {

/// All tensors, in the order of the file. A checkpoint (Lightning's, or that of a script) may have other
/// values of any kind: its state_dict, model_state_dict or model is read alone. Tensors of other dicts in the
/// dict have names with dots: "encoder.fc.weight". The prefixes module., model. and _orig_mod. are removed if
/// all names have them. `metadata` says both, as texts for a person. Nothing is executed. Throws Error(data)
/// for a file that is damaged or has anything else in its state dict than that needs.
ForeignFile read_state_dict(const std::string& path);

}  // namespace lockstep
