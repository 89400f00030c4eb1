# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Every dependency is found here, and a missing one names the package that has it.

function(lockstep_missing what debian)
  message(FATAL_ERROR "Lockstep needs ${what}, which was not found.\n"
          "  Debian and Ubuntu: apt-get install ${debian}\n"
          "  All at once:       scripts/install_dependencies.sh\n"
          "  Installed elsewhere: add its prefix to CMAKE_PREFIX_PATH.")
endfunction()

macro(lockstep_find package found what debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${found})
    lockstep_missing("${what}" "${debian}")
  endif()
endmacro()

find_package(Threads REQUIRED)
lockstep_find(MPI MPI_CXX_FOUND "an MPI library (Open MPI or MPICH)" "libopenmpi-dev openmpi-bin" COMPONENTS CXX)
lockstep_find(HDF5 HDF5_FOUND "HDF5 with its C interface" "libhdf5-dev" COMPONENTS C)
if(HDF5_IS_PARALLEL AND TARGET hdf5::hdf5)
  target_link_libraries(hdf5::hdf5 INTERFACE MPI::MPI_CXX)  # its header includes mpi.h
endif()
lockstep_find(dnnl dnnl_FOUND "oneDNN 2.5 or later" "libdnnl-dev ocl-icd-opencl-dev" CONFIG)
lockstep_find(yaml-cpp yaml-cpp_FOUND "yaml-cpp" "libyaml-cpp-dev" CONFIG)
lockstep_find(fmt fmt_FOUND "fmt" "libfmt-dev" CONFIG)
lockstep_find(spdlog spdlog_FOUND "spdlog" "libspdlog-dev" CONFIG)
lockstep_find(Protobuf Protobuf_FOUND "protobuf with its compiler" "libprotobuf-dev protobuf-compiler")
lockstep_find(ZLIB ZLIB_FOUND "zlib" "zlib1g-dev")
lockstep_find(JPEG JPEG_FOUND "libjpeg-turbo" "libjpeg-dev")
lockstep_find(PNG PNG_FOUND "libpng" "libpng-dev")
lockstep_find(nlohmann_json nlohmann_json_FOUND "JSON for Modern C++" "nlohmann-json3-dev" CONFIG)

find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp)
if(NOT CLI11_INCLUDE_DIR)
  lockstep_missing("CLI11" "libcli11-dev")
endif()
find_path(EIGEN3_INCLUDE_DIR Eigen/Eigenvalues PATH_SUFFIXES eigen3)
if(NOT EIGEN3_INCLUDE_DIR)
  lockstep_missing("Eigen 3" "libeigen3-dev")
endif()
find_path(XXHASH_INCLUDE_DIR xxhash.h)
if(NOT XXHASH_INCLUDE_DIR)
  lockstep_missing("xxHash" "libxxhash-dev")
endif()
find_path(LIBDEFLATE_INCLUDE_DIR libdeflate.h)
find_library(LIBDEFLATE_LIBRARY deflate)
if(NOT LIBDEFLATE_INCLUDE_DIR OR NOT LIBDEFLATE_LIBRARY)
  lockstep_missing("libdeflate" "libdeflate-dev")
endif()
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

if(LOCKSTEP_TESTS)
  lockstep_find(GTest GTest_FOUND "GoogleTest" "libgtest-dev libgmock-dev")
endif()
if(LOCKSTEP_BENCH)
  lockstep_find(benchmark benchmark_FOUND "Google Benchmark" "libbenchmark-dev" CONFIG)
endif()
