# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# The rooms' walls (docs/architecture.md): a room includes only from the rooms that it may use, and each outside library
# is known in one room.
#
#   cmake -DSOURCE=<src folder> -P check_includes.cmake
cmake_minimum_required(VERSION 3.22)

set(uses_core core)
set(uses_kernels core kernels)
set(uses_model core kernels model)
set(uses_optim core kernels model optim)
set(uses_comm core comm)
set(uses_io core io)
set(uses_exchange core kernels model io data exchange)
set(uses_data core io data)
set(uses_train core kernels model optim comm data io train)
set(uses_session core kernels model optim comm data io train session)
set(uses_driver core kernels model optim comm data io exchange train session driver)

set(outside_rules  # what an #include begins with, and the room that may have it
    "mpi\\.h=comm" "nccl\\.h=comm" "hdf5(_hl)?\\.h=io" "H5[A-Z][A-Za-z]*\\.h=io" "dnnl[._]=kernels"
    "oneapi/dnnl=kernels" "yaml-cpp/=driver" "CLI/=driver" "google/protobuf/=io" "zlib\\.h=io" "libdeflate\\.h=io" "Eigen/=core"
    "unsupported/Eigen/=core")
set(cuda_headers "^(cuda|cublas|cudnn|curand|cusparse|nvml|thrust/|cub/|cooperative_groups|nvtx|device_launch_parameters)")

if(NOT IS_DIRECTORY "${SOURCE}/core")
  message(FATAL_ERROR "no rooms in '${SOURCE}'")
endif()
set(violations "")
set(count 0)
macro(violation text)
  string(APPEND violations "  src/${file}: ${text}\n")
endmacro()

file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/*.h ${SOURCE}/*.cpp ${SOURCE}/*.cu ${SOURCE}/*.cuh ${SOURCE}/*.inc)
foreach(file IN LISTS files)
  if(NOT file MATCHES "^([a-z]+)/")
    continue()  # main.cpp
  endif()
  set(room ${CMAKE_MATCH_1})
  if(NOT DEFINED uses_${room})
    violation("'${room}' is not a room; give it a line in check_includes.cmake and in docs/architecture.md")
    continue()
  endif()
  file(STRINGS ${SOURCE}/${file} lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "include[ \t]*[<\"]([^>\"]+)[>\"]")
      continue()
    endif()
    set(header ${CMAKE_MATCH_1})
    math(EXPR count "${count} + 1")
    string(REGEX MATCH "^[a-z]+/" other "${header}")
    string(REPLACE "/" "" other "${other}")
    if(header STREQUAL "core/eigen_view.h")
      violation("includes \"${header}\", which is for programs that use Lockstep")
    endif()
    if(line MATCHES "\"" AND other AND DEFINED uses_${other})
      if(NOT other IN_LIST uses_${room})
        violation("includes \"${header}\", but ${room} may use only: ${uses_${room}}")
      endif()
    endif()
    foreach(rule IN LISTS outside_rules)
      string(REGEX REPLACE "=[a-z]+$" "" begin "${rule}")
      string(REGEX MATCH "[a-z]+$" home "${rule}")
      if(file STREQUAL "core/eigen_view.h" AND header STREQUAL "Eigen/Core")
        continue()  # a view for programs that use Lockstep, which nothing in it includes
      endif()
      if(header MATCHES "^${begin}" AND NOT room STREQUAL home)
        violation("includes <${header}>, which only ${home} may")
      endif()
    endforeach()
    if(header MATCHES "${cuda_headers}" AND NOT file MATCHES "\\.cuh?$" AND NOT file MATCHES "cuda[^/]*$")
      violation("includes <${header}>, which only *.cu and *cuda* files may")
    endif()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "The rooms' include rules are broken:\n${violations}")
endif()
if(count EQUAL 0)
  message(FATAL_ERROR "no #include was found in '${SOURCE}': the check does not look at the sources")
endif()
message(STATUS "${count} includes, all allowed")
