// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// The next `count` plans that cuDNN is asked to finalize fail with `status`, a cudnnStatus_t.
void fail_plans(int status, int count);

}  // namespace lockstep
