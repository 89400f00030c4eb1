// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save(model.state_dict(), file): a ZIP file with a pickle and one member for each storage.
#pragma once

#include <string>

#include "exchange/foreign_tensor.h"

namespace lockstep {

/// All tensors, in the order of the file. Tensors of dicts in the dict have names with dots:
/// "model.fc.weight". Other values are left out. Nothing is executed. Throws Error(data) for a file that is
/// damaged or has anything else than a state dict needs.
ForeignFile read_state_dict(const std::string& path);

}  // namespace lockstep
