# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# lockstep_room_test(ROOM [PARTS n] [EXCEPT filter] LINK ...): all *_test.cpp of the calling folder as one program, ROOM_test.
#   It runs in n processes (ROOM_test.1, ...), each with every n-th of its tests, without those that match `filter`.
# lockstep_filtered_test(NAME PROGRAM FILTER [TIMEOUT seconds] [ENVIRONMENT name=value ...]): some tests of such a program again,
#   or those that it leaves out.
# lockstep_unit_test(NAME [TIMEOUT seconds] SOURCES ... LINK ...): a program of its own, GoogleTest's own main.
# lockstep_mpi_test(NAME RANKS 1 2 3 4 SOURCES ... LINK ...): the same binary under mpirun for each number of ranks,
#   with tests/support/mpi_main.cpp as main; each with its number of processors and a time limit.

set(LOCKSTEP_MPIRUN ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none)
# What every test's environment needs: mpirun as root (containers), several sessions on one machine. Without Open MPI's
# component "cm", which looks for special networks for 0.2 s in each start of a rank: half of a short run.
set(LOCKSTEP_TEST_ENVIRONMENT
    "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1"
    "OMPI_MCA_btl_vader_single_copy_mechanism=none;OMPI_MCA_btl_base_warn_component_unused=0"
    "OMPI_MCA_mpi_yield_when_idle=1;OMPI_MCA_pml=^cm;TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/support/tsan.supp"
    "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/support/lsan.supp"
    "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")  # by itself it reports and goes on

# Under mpirun leaks are not looked for: Open MPI's own, in plugins that it has unloaded, cannot be told from ours.
set(LOCKSTEP_MPI_TEST_ENVIRONMENT ${LOCKSTEP_TEST_ENVIRONMENT}
    "ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1")

# The tests' own code is compiled fast: with one precompiled header for all, and with -O1, at which GCC's warnings about
# the flow of data are not reliable. The code under test is compiled as for users.
if(NOT CMAKE_BUILD_TYPE STREQUAL Debug)
  set(LOCKSTEP_TEST_FLAGS -O1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(APPEND LOCKSTEP_TEST_FLAGS -Wno-array-bounds -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow)
  endif()
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/empty_main.cpp CONTENT "int main() {}\n")
add_library(lockstep_test_folders STATIC ${CMAKE_CURRENT_SOURCE_DIR}/support/test_folders.cpp)
target_compile_definitions(lockstep_test_folders PRIVATE
  LOCKSTEP_SOURCE="${PROJECT_SOURCE_DIR}" LOCKSTEP_EXTRA_DATA="${LOCKSTEP_EXTRA_DATA}")
target_link_libraries(lockstep_test_folders PRIVATE lockstep_flags)
add_executable(lockstep_test_precompiled ${PROJECT_BINARY_DIR}/empty_main.cpp)
target_compile_options(lockstep_test_precompiled PRIVATE ${LOCKSTEP_TEST_FLAGS})
target_link_libraries(lockstep_test_precompiled PRIVATE lockstep_flags fmt::fmt GTest::gmock GTest::gtest)
target_include_directories(lockstep_test_precompiled PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/support)
target_precompile_headers(lockstep_test_precompiled PRIVATE <precompiled.h>)

# For an executable whose sources are tests.
function(lockstep_compile_as_test target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${target} PRIVATE ${LOCKSTEP_TEST_FLAGS})
  target_precompile_headers(${target} REUSE_FROM lockstep_test_precompiled)
endfunction()

# `ctest -L quick` (scripts/test.sh --quick) runs the unit tests without a time limit of their own, the tests of several
# ranks on 2, and one short run of the program. This target builds them.
add_custom_target(quick_tests)

function(lockstep_unit_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LINK" ${ARGN})
  set(labels quick)
  if(T_TIMEOUT)
    set(labels "")
  else()
    set(T_TIMEOUT 120)
  endif()
  add_executable(${name} ${T_SOURCES})
  lockstep_compile_as_test(${name})
  target_link_libraries(${name} PRIVATE ${T_LINK} lockstep_flags GTest::gmock GTest::gtest GTest::gtest_main)
  if(labels)
    add_dependencies(quick_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${T_TIMEOUT} ENVIRONMENT "${LOCKSTEP_TEST_ENVIRONMENT}")
endfunction()

function(lockstep_room_test room)
  cmake_parse_arguments(T "" "PARTS;EXCEPT" "LINK" ${ARGN})
  if(NOT T_PARTS)
    set(T_PARTS 1)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  set(name ${room}_test)
  add_executable(${name} ${sources})
  lockstep_compile_as_test(${name})
  target_link_libraries(${name} PRIVATE ${T_LINK} lockstep_test_folders lockstep_flags GTest::gmock GTest::gtest GTest::gtest_main)
  add_dependencies(quick_tests ${name})
  foreach(part RANGE 1 ${T_PARTS})
    math(EXPR index "${part} - 1")
    add_test(NAME ${name}.${part} COMMAND ${name})
    set_tests_properties(${name}.${part} PROPERTIES LABELS quick TIMEOUT 180
      ENVIRONMENT "${LOCKSTEP_TEST_ENVIRONMENT};GTEST_TOTAL_SHARDS=${T_PARTS};GTEST_SHARD_INDEX=${index};GTEST_FILTER=*-${T_EXCEPT}")
  endforeach()
endfunction()

function(lockstep_filtered_test name program filter)
  cmake_parse_arguments(T "" "TIMEOUT" "ENVIRONMENT" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${program})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT}
    ENVIRONMENT "${LOCKSTEP_TEST_ENVIRONMENT};GTEST_FILTER=${filter};${T_ENVIRONMENT}")
endfunction()

function(lockstep_mpi_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "RANKS;SOURCES;LINK" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  add_executable(${name} ${T_SOURCES} ${PROJECT_SOURCE_DIR}/tests/support/mpi_main.cpp)
  lockstep_compile_as_test(${name})
  target_link_libraries(${name} PRIVATE ${T_LINK} lockstep_comm lockstep_flags MPI::MPI_CXX GTest::gmock GTest::gtest)
  foreach(ranks IN LISTS T_RANKS)
    add_test(NAME ${name}.${ranks}_ranks COMMAND ${LOCKSTEP_MPIRUN} -n ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.${ranks}_ranks PROPERTIES TIMEOUT ${T_TIMEOUT} PROCESSORS ${ranks}
      ENVIRONMENT "${LOCKSTEP_MPI_TEST_ENVIRONMENT};LOCKSTEP_TEST_RANKS=${ranks}")
    if(ranks EQUAL 2)
      set_property(TEST ${name}.${ranks}_ranks PROPERTY LABELS quick)
      add_dependencies(quick_tests ${name})
    endif()
  endforeach()
endfunction()
