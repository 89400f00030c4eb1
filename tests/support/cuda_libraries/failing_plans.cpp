// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands between the program and cuDNN: finalizing a plan can be made to fail. All else is cuDNN's.
#include "failing_plans.h"

#include <cudnn.h>
#include <dlfcn.h>

#include <set>

namespace lockstep {

namespace {
int status_of_plans = 0, failures_left = 0;
std::set<cudnnBackendDescriptor_t> plans;

template <typename Function>
Function* real(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
}  // namespace

void fail_plans(int status, int count) {
  status_of_plans = status;
  failures_left = count;
}

}  // namespace lockstep

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  static auto* const create = lockstep::real("cudnnBackendCreateDescriptor", &cudnnBackendCreateDescriptor);
  const cudnnStatus_t status = create(type, descriptor);
  lockstep::plans.erase(*descriptor);
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) lockstep::plans.insert(*descriptor);
  return status;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  static auto* const finalize = lockstep::real("cudnnBackendFinalize", &cudnnBackendFinalize);
  if (lockstep::plans.count(descriptor) == 0 || lockstep::failures_left == 0) return finalize(descriptor);
  --lockstep::failures_left;
  return static_cast<cudnnStatus_t>(lockstep::status_of_plans);
}
