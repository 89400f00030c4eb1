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
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled.h>")
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
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/lockstep>)
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

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(LOCKSTEP_ISA_LEVELS baseline avx2 avx512)
else()
  set(LOCKSTEP_ISA_LEVELS baseline)
endif()
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
  foreach(level IN LISTS LOCKSTEP_ISA_LEVELS)
    set(target lockstep_${room}_${level})
    add_library(${target} OBJECT ${ARGN})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${target} PRIVATE LOCKSTEP_ISA=${level})
    target_compile_options(${target} PRIVATE ${LOCKSTEP_ISA_FLAGS_${level}})
    target_link_libraries(${target} PRIVATE lockstep_flags lockstep_isa_flags)
    target_sources(lockstep_${room} PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()
