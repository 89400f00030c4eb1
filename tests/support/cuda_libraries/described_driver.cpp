// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for NVIDIA's driver, libcuda.so.1: it accepts every kernel that a library loads, and has no GPU.
// While cuDNN makes a plan whose kernel it compiles itself, it loads that kernel; without a driver there are
// no such plans (described_attention.h).
#include <cstddef>

namespace {
constexpr int kSuccess = 0, kNoDevice = 100;
void* const kHandle = reinterpret_cast<void*>(std::size_t{4096});
}  // namespace

extern "C" {

int cuInit(unsigned int) { return kNoDevice; }
int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned int, void*, void*, unsigned int) {
  *library = kHandle;
  return kSuccess;
}
int cuLibraryUnload(void*) { return kSuccess; }
int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = kHandle;
  return kSuccess;
}
int cuLibraryGetModule(void** module, void*) {
  *module = kHandle;
  return kSuccess;
}
int cuKernelGetFunction(void** function, void*) {
  *function = kHandle;
  return kSuccess;
}
int cuKernelSetAttribute(int, int, void*, int) { return kSuccess; }
int cuFuncSetAttribute(void*, int, int) { return kSuccess; }

// cuDNN requires that these exist. Their arguments are not read.
int cuLibraryLoadFromFile() { return kNoDevice; }
int cuKernelGetAttribute() { return kNoDevice; }
int cuOccupancyMaxPotentialClusterSize() { return kNoDevice; }
int cuLaunchKernel() { return kNoDevice; }
int cuLaunchCooperativeKernel() { return kNoDevice; }
int cuLaunchKernelEx() { return kNoDevice; }
int cuGetErrorName() { return kNoDevice; }
int cuGetErrorString() { return kNoDevice; }
int cuCtxGetCurrent() { return kNoDevice; }
int cuCtxGetLimit() { return kNoDevice; }
int cuCtxPopCurrent() { return kNoDevice; }
int cuCtxPushCurrent() { return kNoDevice; }
int cuStreamGetCtx() { return kNoDevice; }
int cuDriverGetVersion() { return kNoDevice; }
int cuLinkCreate() { return kNoDevice; }
int cuLinkAddData() { return kNoDevice; }
int cuLinkComplete() { return kNoDevice; }
int cuLinkDestroy() { return kNoDevice; }
int cuDeviceGetCount() { return kNoDevice; }
int cuDeviceGet() { return kNoDevice; }

}  // extern "C"
