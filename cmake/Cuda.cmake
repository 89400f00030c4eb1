# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Finds what the GPU backend is built with, if it is to be built (LOCKSTEP_CUDA). Sets LOCKSTEP_WITH_CUDA and
# LOCKSTEP_WITH_NCCL, enables the language CUDA, and makes the imported targets lockstep::cudart,
# lockstep::cublaslt, lockstep::cudnn and, where NCCL is found, lockstep::nccl.
#
# The libraries are looked for in LOCKSTEP_CUDA_ROOTS, in the toolkit of nvcc, in the folders of NVIDIA's Python wheels
# (<site-packages>/nvidia/{cudnn,nccl,cublas,cuda_runtime}; give the <site-packages>/nvidia folder as a root) and in the system.
set(LOCKSTEP_CUDA AUTO CACHE STRING "Build the GPU backend: AUTO (where nvcc, cuBLAS and cuDNN are found), ON, OFF")
set_property(CACHE LOCKSTEP_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LOCKSTEP_CUDA_ROOTS "" CACHE STRING "Folders where the CUDA toolkit, cuDNN and NCCL are looked for first")
mark_as_advanced(CMAKE_CUDA_ARCHITECTURES)  # used here in any case: without nvcc CMake must not warn that it is not
set(LOCKSTEP_WITH_CUDA OFF)
set(LOCKSTEP_WITH_NCCL OFF)

# Says why there is no GPU backend, and stops if there must be one.
macro(lockstep_no_cuda why)
  if(LOCKSTEP_CUDA STREQUAL "AUTO")
    message(STATUS "GPU backend: off (${why})")
  else()
    message(FATAL_ERROR "LOCKSTEP_CUDA=${LOCKSTEP_CUDA}, but ${why}.\n"
            "  Looked in: ${LOCKSTEP_CUDA_ROOTS} ${lockstep_cuda_places}\n"
            "  Installed elsewhere: -DLOCKSTEP_CUDA_ROOTS=<folder with bin, include, lib>;<folder of Python wheels>/nvidia")
  endif()
endmacro()

# lockstep_cuda_find(<variable> <wheel's folder> <header> <library name>...): sets <variable>_INCLUDE and <variable>_LIBRARY.
function(lockstep_cuda_find variable wheel header)
  set(roots ${LOCKSTEP_CUDA_ROOTS})
  list(TRANSFORM roots APPEND "/${wheel}")
  list(APPEND roots ${LOCKSTEP_CUDA_ROOTS} ${lockstep_cuda_places})
  find_path(${variable}_INCLUDE ${header} HINTS ${roots} PATH_SUFFIXES include)
  find_library(${variable}_LIBRARY NAMES ${ARGN} HINTS ${roots} PATH_SUFFIXES lib64 lib)
  mark_as_advanced(${variable}_INCLUDE ${variable}_LIBRARY)
endfunction()

function(lockstep_cuda_import target variable)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${variable}_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${${variable}_INCLUDE}")
endfunction()

if(NOT LOCKSTEP_CUDA MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|1|0)$")
  message(FATAL_ERROR "LOCKSTEP_CUDA=${LOCKSTEP_CUDA}: AUTO, ON or OFF")
elseif(NOT LOCKSTEP_CUDA)
  message(STATUS "GPU backend: off (LOCKSTEP_CUDA=${LOCKSTEP_CUDA})")
  return()
elseif(LOCKSTEP_SANITIZE)
  lockstep_no_cuda("the sanitizers of LOCKSTEP_SANITIZE do not know device code")
  return()
endif()

set(lockstep_cuda_places $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
find_program(LOCKSTEP_NVCC nvcc HINTS ${LOCKSTEP_CUDA_ROOTS} PATHS ${lockstep_cuda_places} PATH_SUFFIXES bin)
mark_as_advanced(LOCKSTEP_NVCC)
if(NOT LOCKSTEP_NVCC)
  lockstep_no_cuda("nvcc was not found")
  return()
endif()
get_filename_component(lockstep_toolkit ${LOCKSTEP_NVCC} REALPATH)
get_filename_component(lockstep_toolkit ${lockstep_toolkit} DIRECTORY)
get_filename_component(lockstep_toolkit ${lockstep_toolkit} DIRECTORY)
list(PREPEND lockstep_cuda_places ${lockstep_toolkit})

# The architectures of current clusters (A100, H100 and H200, B200) that this nvcc knows, and PTX of the last for later ones.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND ${LOCKSTEP_NVCC} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  set(architectures "")
  foreach(architecture 80 90 100)
    if(known MATCHES "compute_${architecture}[\r\n]")
      list(APPEND architectures ${architecture}-real)
      set(last ${architecture})
    endif()
  endforeach()
  if(NOT architectures)
    lockstep_no_cuda("${LOCKSTEP_NVCC} knows none of the architectures 80, 90, 100")
    return()
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${architectures} ${last}-virtual CACHE STRING "GPU architectures to compile for" FORCE)
endif()

lockstep_cuda_find(LOCKSTEP_CUDART cuda_runtime cuda_runtime.h cudart_static cudart)
lockstep_cuda_find(LOCKSTEP_CUBLASLT cublas cublasLt.h cublasLt libcublasLt.so.13 libcublasLt.so.12)
lockstep_cuda_find(LOCKSTEP_CUDNN cudnn cudnn.h cudnn libcudnn.so.9)
lockstep_cuda_find(LOCKSTEP_NCCL nccl nccl.h nccl libnccl.so.2)
foreach(library CUDART CUBLASLT CUDNN)
  if(NOT LOCKSTEP_${library}_LIBRARY OR NOT LOCKSTEP_${library}_INCLUDE)
    string(TOLOWER ${library} name)
    lockstep_no_cuda("${LOCKSTEP_NVCC} is there, ${name} (header and library) was not found")
    return()
  endif()
endforeach()

set(lockstep_cudnn_version 0)
foreach(header cudnn_version.h cudnn_version_v9.h)
  if(EXISTS ${LOCKSTEP_CUDNN_INCLUDE}/${header} AND NOT lockstep_cudnn_version)
    file(STRINGS ${LOCKSTEP_CUDNN_INCLUDE}/${header} lines REGEX "#define CUDNN_(MAJOR|MINOR) ")
    string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" lockstep_cudnn_version "${lines}")
  endif()
endforeach()
if(lockstep_cudnn_version VERSION_LESS 9)
  lockstep_no_cuda("${LOCKSTEP_CUDNN_INCLUDE} has cuDNN ${lockstep_cudnn_version}, 9 or later is needed")
  return()
endif()

# AUTO must not stop where nvcc is there and does not work (its host compiler, for one, may be too new for it).
if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(ENV{CUDACXX} ${LOCKSTEP_NVCC})
  if(NOT DEFINED ENV{CUDAHOSTCXX} AND NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    lockstep_no_cuda("${LOCKSTEP_NVCC} does not compile with the host compiler ${CMAKE_CXX_COMPILER}")
    return()
  endif()
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
  lockstep_no_cuda("${LOCKSTEP_NVCC} is ${CMAKE_CUDA_COMPILER_VERSION}, 12 or later is needed for C++20")
  return()
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc 12 has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # lockstep::cudart, linked by name

find_library(LOCKSTEP_RT_LIBRARY rt)
mark_as_advanced(LOCKSTEP_RT_LIBRARY)
lockstep_cuda_import(lockstep::cudart LOCKSTEP_CUDART)
set_property(TARGET lockstep::cudart PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
if(LOCKSTEP_RT_LIBRARY)
  set_property(TARGET lockstep::cudart APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${LOCKSTEP_RT_LIBRARY})
endif()
lockstep_cuda_import(lockstep::cublaslt LOCKSTEP_CUBLASLT)
lockstep_cuda_import(lockstep::cudnn LOCKSTEP_CUDNN)
set(LOCKSTEP_WITH_CUDA ON)
set(lockstep_nccl_found "without NCCL: ranks on several GPUs go through MPI")
if(LOCKSTEP_NCCL_LIBRARY AND LOCKSTEP_NCCL_INCLUDE)
  lockstep_cuda_import(lockstep::nccl LOCKSTEP_NCCL)
  set(LOCKSTEP_WITH_NCCL ON)
  set(lockstep_nccl_found "NCCL ${LOCKSTEP_NCCL_LIBRARY}")
endif()
message(STATUS "GPU backend: on (nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}, "
        "cuBLAS ${LOCKSTEP_CUBLASLT_LIBRARY}, cuDNN ${lockstep_cudnn_version} ${LOCKSTEP_CUDNN_LIBRARY}, ${lockstep_nccl_found})")
