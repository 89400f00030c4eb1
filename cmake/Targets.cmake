# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# lockstep_room(NAME [OUTSIDE_STEP] SOURCES ... USES rooms ... LINK private libraries ...): one room, one static library.
#   OUTSIDE_STEP: no training step runs its code, so that it is compiled with -O1, in less time.
# lockstep_isa_sources(ROOM files): compiles each file once per instruction-set level (see src/kernels/isa.h).

# Flags of every target of ours. No contraction of a*b+c behind our back: a sum's bits must not depend on
# where the compiler's vector loop ends (docs/architecture.md, "What keeps the bits").
add_library(lockstep_flags INTERFACE)
target_compile_features(lockstep_flags INTERFACE cxx_std_20)
set(lockstep_host_flags -ffp-contract=off -fno-fast-math -Wall -Wextra -Wshadow -Wpedantic -Wnon-virtual-dtor
    -Woverloaded-virtual -Wno-missing-field-initializers)
target_compile_options(lockstep_flags INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${lockstep_host_flags}>")
# Messages name src/..., whatever folder was compiled.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fmacro-prefix-map=a=b LOCKSTEP_HAS_MACRO_PREFIX_MAP)
if(LOCKSTEP_HAS_MACRO_PREFIX_MAP)
  target_compile_options(lockstep_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>")
endif()
if(LOCKSTEP_WERROR)
  target_compile_options(lockstep_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(LOCKSTEP_NATIVE)
  target_compile_options(lockstep_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-march=native>)
endif()
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()
if(LOCKSTEP_LIBFUZZER)
  add_compile_options(-fsanitize-coverage=trace-pc,trace-cmp)  # see tests/fuzz/parsers/coverage.cpp
endif()

# A linker that is faster than GNU ld, for the programs of this build tree.
find_program(LOCKSTEP_FAST_LINKER NAMES ld.mold ld.lld)
mark_as_advanced(LOCKSTEP_FAST_LINKER)
if(LOCKSTEP_FAST_LINKER AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld")
  get_filename_component(linker ${LOCKSTEP_FAST_LINKER} NAME)
  string(REPLACE "ld." "" linker ${linker})
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=${linker} LOCKSTEP_FAST_LINKER_WORKS)
  if(LOCKSTEP_FAST_LINKER_WORKS)
    add_link_options(-fuse-ld=${linker})
  endif()
endif()

# One precompiled header (precompiled.h) for all rooms: most of what their files take to parse. It is compiled with the
# flags that the rooms share: the definitions of a single room must not matter to the standard library and fmt. Twice, since the
# level of optimisation does.
set(LOCKSTEP_OUTSIDE_STEP_FLAGS "")
if(CMAKE_BUILD_TYPE STREQUAL Release)
  set(LOCKSTEP_OUTSIDE_STEP_FLAGS -O1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # these warnings are not reliable at -O1
    list(APPEND LOCKSTEP_OUTSIDE_STEP_FLAGS -Wno-array-bounds -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow)
  endif()
endif()
if(LOCKSTEP_PCH)
  # GCC reports false array bounds and the like in code of the standard library that it inlines from a precompiled header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(lockstep_flags INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>")
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/empty.cpp CONTENT "")
  foreach(target lockstep_precompiled lockstep_precompiled_outside_step)
    add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/empty.cpp)
    target_link_libraries(${target} PRIVATE lockstep_flags fmt::fmt)
    # Without a path, so that another clone's is the same for ccache.
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake)
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<precompiled.h$<ANGLE-R>>")
  endforeach()
  target_compile_options(lockstep_precompiled_outside_step PRIVATE ${LOCKSTEP_OUTSIDE_STEP_FLAGS})
endif()

function(lockstep_room name)
  cmake_parse_arguments(ROOM "OUTSIDE_STEP" "" "SOURCES;USES;LINK" ${ARGN})
  set(target lockstep_${name})
  add_library(${target} STATIC ${ROOM_SOURCES})
  add_library(Lockstep::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:lockstep_flags>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  foreach(room IN LISTS ROOM_USES)
    target_link_libraries(${target} PUBLIC lockstep_${room})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ROOM_LINK})
  set(precompiled lockstep_precompiled)
  if(ROOM_OUTSIDE_STEP)
    target_compile_options(${target} PRIVATE ${LOCKSTEP_OUTSIDE_STEP_FLAGS})
    set(precompiled lockstep_precompiled_outside_step)
  endif()
  if(LOCKSTEP_PCH)
    target_precompile_headers(${target} REUSE_FROM ${precompiled})
  endif()
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_ROOMS ${target})
endfunction()

# The levels that hot kernels are compiled for: "all", "native" (the best one of this machine, which takes a third of the time),
# or a list.
set(LOCKSTEP_ISA_LEVELS all CACHE STRING "Instruction-set levels of the kernels: all, native, or a list of baseline, avx2, avx512")
set(lockstep_known_levels baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(lockstep_known_levels baseline avx2 avx512)
endif()
if(LOCKSTEP_ISA_LEVELS STREQUAL all)
  set(lockstep_levels ${lockstep_known_levels})
elseif(LOCKSTEP_ISA_LEVELS STREQUAL native)
  set(lockstep_levels baseline)
  if(EXISTS /proc/cpuinfo AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    file(STRINGS /proc/cpuinfo processor REGEX "^flags" LIMIT_COUNT 1)
    string(APPEND processor " ")
    if(processor MATCHES " avx512f " AND processor MATCHES " avx512bw " AND processor MATCHES " avx512dq " AND processor MATCHES " avx512vl ")
      set(lockstep_levels avx512)
    elseif(processor MATCHES " avx2 " AND processor MATCHES " fma " AND processor MATCHES " bmi2 ")
      set(lockstep_levels avx2)
    endif()
  endif()
else()
  set(lockstep_levels ${LOCKSTEP_ISA_LEVELS})
endif()
set(LOCKSTEP_ISA_DEFINITIONS "")
foreach(level IN LISTS lockstep_levels)
  if(NOT level IN_LIST lockstep_known_levels)
    message(FATAL_ERROR "LOCKSTEP_ISA_LEVELS: '${level}' is not one of all, native, ${lockstep_known_levels}")
  endif()
  string(TOUPPER ${level} upper)
  list(APPEND LOCKSTEP_ISA_DEFINITIONS LOCKSTEP_BUILDS_${upper})
endforeach()
set(LOCKSTEP_ISA_FLAGS_baseline "")
set(LOCKSTEP_ISA_FLAGS_avx2 -mavx2 -mfma -mbmi2)
set(LOCKSTEP_ISA_FLAGS_avx512 -mavx2 -mfma -mbmi2 -mavx512f -mavx512bw -mavx512dq -mavx512vl
    -mprefer-vector-width=512)

# After lockstep_flags, whose -fno-fast-math would undo them. Neither changes a result: no errno from sqrtf, no
# floating-point traps to keep apart.
add_library(lockstep_isa_flags INTERFACE)
target_compile_options(lockstep_isa_flags INTERFACE -fno-math-errno -fno-trapping-math)
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_isa_flags INTERFACE -O1)  # checks in unrolled loops take -O3 many minutes a file
else()
  target_compile_options(lockstep_isa_flags INTERFACE -O3)
endif()

function(lockstep_isa_sources room)
  foreach(level IN LISTS lockstep_levels)
    set(target lockstep_${room}_${level})
    add_library(${target} OBJECT ${ARGN})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${target} PRIVATE LOCKSTEP_ISA=${level})
    target_compile_options(${target} PRIVATE ${LOCKSTEP_ISA_FLAGS_${level}})
    target_link_libraries(${target} PRIVATE lockstep_flags lockstep_isa_flags)
    target_sources(lockstep_${room} PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()
