// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/backend_cuda.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "core/device_cuda.h"
#include "core/error.h"
#include "core/trace.h"
#include "kernels/backend.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/kernel_table_cuda.h"
#include "kernels/measured_algorithms_cuda.h"
#include "kernels/plan_check_cuda.h"
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace lockstep {

namespace {

// With LOCKSTEP_NVTX=1, NVIDIA's profilers show the spans of core/trace.h (layers and phases) as named
// ranges. Steps are then not launched as graphs, since a graph has no layers.
#if __has_include(<nvtx3/nvToolsExt.h>)
void listen_with_nvtx() {
  const char* wanted = std::getenv("LOCKSTEP_NVTX");
  if (wanted == nullptr || std::string_view(wanted) != "1") return;
  set_trace_listener({[](const char*, const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); }});
}
#else
void listen_with_nvtx() {}
#endif

std::string dotted(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// The NUMA node of a PCI device according to the system; -1 if unknown.
int numa_node_of(const std::string& address) {
  std::ifstream file("/sys/bus/pci/devices/" + address + "/numa_node");
  int node = -1;
  file >> node;
  return file ? node : -1;
}

/// "580.65.06, " of the loaded kernel module; empty if unknown.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 && word.find('.') != std::string::npos)
      return word + ", ";
  return "";
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  int num_devices() override {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : forget_error();
  }

  std::string problem() override {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess) return count == 0 ? "no GPU is visible" : "";
    (void)forget_error();
    return cudaGetErrorString(code);
  }

  DeviceDescription describe(int index) override {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, index), "reading the GPU's properties");
    std::array<char, 32> address{};
    check_cuda(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()) - 1, index),
               "reading the GPU's address");
    DeviceDescription description{properties.name, address.data(), properties.totalGlobalMem};
    for (char& c : description.address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    description.numa_node = numa_node_of(description.address);
    description.num_multiprocessors = properties.multiProcessorCount;
    return description;
  }

  Device& open(int index) override {
    const std::lock_guard lock(mutex_);
    auto& device = devices_[index];
    if (!device) {
      device = std::make_unique<CudaDevice>(index);
      listen_with_nvtx();
    }
    return *device;
  }

  const KernelTable& kernels(const KernelOptions& options) override {
    return cuda_kernels({.allow_tf32 = options.allow_tf32, .check_plans = options.check_plans});
  }

  std::vector<std::pair<std::string, std::string>> versions() override {
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    return {{"CUDA driver", driver == 0 ? "none" : driver_version() + "for CUDA " + dotted(driver)},
            {"CUDA libraries", "runtime " + dotted(runtime) + ", " + cuda_library_versions()}};
  }

  std::string chosen_algorithms() override { return cuda::chosen_algorithms(); }
  std::string wrong_algorithms() override { return cuda::wrong_algorithms(); }
  std::string inexact_algorithms() override { return cuda::inexact_algorithms(); }
  void use_measured_algorithms(const std::string& table) override { cuda::use_measured_algorithms(table); }
  std::string measure_algorithms(FunctionRef<void()> prepare) override {
    return cuda::measure_algorithms(prepare);
  }
  void free_setup_memory() override { cuda::free_check_memory(); }

 private:
  static int forget_error() {
    (void)cudaGetLastError();
    return 0;
  }
  std::mutex mutex_;
  std::map<int, std::unique_ptr<CudaDevice>> devices_;
};

}  // namespace

Backend& cuda_backend() {
  static auto* backend = new CudaBackend;  // never destroyed: the driver may be gone before static objects
  return *backend;
}

}  // namespace lockstep
