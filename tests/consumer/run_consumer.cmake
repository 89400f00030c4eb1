# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build into a new folder and uses it as a user does: the installed program and pages, a small project that links
# the library, and the installed examples of a layer, a hook and a function (docs/adding_a_layer.md, docs/adding_a_hook.md).
#
#   cmake -DBUILD=... -DSOURCE=... -DSCRATCH=... -DGENERATOR=... -DBUILD_TYPE=... -DFLAGS=... -DCOMPILER=... -DMPIRUN=... -DPYTHON=...
#         -DLAUNCHER=... -P run_consumer.cmake
cmake_minimum_required(VERSION 3.22)

# Runs a command that must succeed; its standard output goes to `out`.
macro(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${code}:\n${out}${err}")
  endif()
  message(STATUS "${out}")
endmacro()

macro(build_project source binary)
  run(${CMAKE_COMMAND} -S ${source} -B ${binary} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
      -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix "-DCMAKE_CXX_FLAGS=${FLAGS}" -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
  run(${CMAKE_COMMAND} --build ${binary})
endmacro()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
set(program ${SCRATCH}/prefix/bin/lockstep)
run(${program} --version)
run(${PYTHON} -B ${SOURCE}/tests/consumer/installation_test.py ${SCRATCH}/prefix ${BUILD})

# A project in C++ alone.
build_project(${SOURCE}/tests/consumer/project ${SCRATCH}/build)
run(${SCRATCH}/build/consumer)
# The same without CMake, by pkg-config.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG AND FLAGS STREQUAL "")
  file(GLOB pc ${SCRATCH}/prefix/lib*/pkgconfig/lockstep.pc ${SCRATCH}/prefix/lib/*/pkgconfig/lockstep.pc)
  get_filename_component(folder "${pc}" DIRECTORY)
  set(pkg_config ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG})
  run(${pkg_config} --validate lockstep)
  run(${pkg_config} --cflags lockstep)
  separate_arguments(cflags UNIX_COMMAND "${out}")
  run(${pkg_config} --libs lockstep)
  separate_arguments(libs UNIX_COMMAND "${out}")
  run(${COMPILER} ${cflags} ${SOURCE}/tests/consumer/project/main.cpp -o ${SCRATCH}/by_pkg_config ${libs})
  run(${SCRATCH}/by_pkg_config)
else()
  message(STATUS "pkg-config is left out: it is not installed, or the library is built with a sanitizer")
endif()
# A build tree is not found, not even where a user names it.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer/project -B ${SCRATCH}/not_installed -G ${GENERATOR}
                -DCMAKE_PREFIX_PATH=${BUILD} RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE err)
if(code EQUAL 0 OR NOT err MATCHES "not found|Could not find")
  message(FATAL_ERROR "the build tree was found: ${err}")
endif()

# A layer in a program of the user's: it is in the layer table and in checkpoints, and has the same bits on one rank and on three.
set(example ${SCRATCH}/prefix/share/lockstep/examples/custom_layer)
build_project(${example} ${SCRATCH}/custom_layer)
run(${SCRATCH}/custom_layer/prelu_test)
set(custom ${SCRATCH}/custom_layer/train_prelu)
run(${custom} check ${example}/digits.yaml)
if(NOT out MATCHES "prelu1 +prelu +8x8x16 +16 ")
  message(FATAL_ERROR "the layer table does not show the layer prelu:\n${out}")
endif()
run(${custom} train ${example}/digits.yaml --steps 12 --run-dir ${SCRATCH}/one)
run(${MPIRUN} -n 3 ${custom} train ${example}/digits.yaml --steps 12 --run-dir ${SCRATCH}/three)
# The installed program does not know the layer. It reads the checkpoint, but cannot train with it.
foreach(ranks one three)
  run(${program} inspect ${SCRATCH}/${ranks} --digest)
  set(digest_${ranks} ${out})
endforeach()
if(NOT digest_one MATCHES "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]" OR NOT digest_one STREQUAL digest_three)
  message(FATAL_ERROR "one rank ends with '${digest_one}', three end with '${digest_three}'")
endif()
run(${program} inspect ${SCRATCH}/one)
if(NOT out MATCHES "variables/prelu1/alpha")
  message(FATAL_ERROR "the checkpoint has no variable of the layer:\n${out}")
endif()
execute_process(COMMAND ${program} check ${example}/digits.yaml RESULT_VARIABLE code ERROR_VARIABLE err)
if(NOT code EQUAL 2 OR NOT err MATCHES "unknown layer 'prelu'")
  message(FATAL_ERROR "the plain program ended with ${code}:\n${err}")
endif()

# The training loop of docs/library.md: the same losses on one rank and on two.
set(page ${SCRATCH}/own_loop)
run(${PYTHON} -B ${SOURCE}/tests/guides/guide.py ${SOURCE}/docs/library.md ${page})
build_project(${page} ${page}/build)
foreach(ranks 1 2)
  run(${MPIRUN} -n ${ranks} ${page}/build/own_loop ${SCRATCH}/prefix/share/lockstep/examples/digits.yaml)
  set(losses_${ranks} "${out}")
endforeach()
if(NOT losses_1 MATCHES "step 30: loss 0[.]" OR NOT losses_1 STREQUAL losses_2)
  message(FATAL_ERROR "the loop's losses on one rank:\n${losses_1}on two:\n${losses_2}")
endif()

# The estimator of examples/estimator: the bits of examples/digits.yaml, on one rank and on three.
set(example ${SCRATCH}/prefix/share/lockstep/examples/estimator)
build_project(${example} ${SCRATCH}/estimator)
foreach(ranks 1 3)
  run(${MPIRUN} -n ${ranks} ${SCRATCH}/estimator/digits ${SCRATCH}/prefix/share/lockstep/data/digits.csv.gz ${SCRATCH}/estimator_${ranks} 30)
  if(NOT out MATCHES "accuracy 0[.][0-9]+ at step 30; the first digits are( [0-9])+")
    message(FATAL_ERROR "the estimator printed: ${out}")
  endif()
  run(${program} inspect ${SCRATCH}/estimator_${ranks} --digest)
  set(digest_${ranks} ${out})
endforeach()
run(${program} train ${SCRATCH}/prefix/share/lockstep/examples/digits.yaml --steps 30 --run-dir ${SCRATCH}/digits_yaml)
run(${program} inspect ${SCRATCH}/digits_yaml --digest)
if(NOT out MATCHES "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]" OR NOT out STREQUAL digest_1 OR NOT out STREQUAL digest_3)
  message(FATAL_ERROR "the YAML ends with '${out}', the estimator with '${digest_1}' and on three ranks '${digest_3}'")
endif()
# The installed program evaluates what the estimator trained.
run(${program} evaluate ${SCRATCH}/estimator_1 --name again)
if(NOT out MATCHES "\"global_step\": *30" OR NOT EXISTS ${SCRATCH}/estimator_1/eval_again)
  message(FATAL_ERROR "the output of evaluate is: ${out}")
endif()

# An estimator with a layer, a loss, a metric, a hook and a reader of its own: the same numbers on one rank and on two.
set(pairs "")
foreach(i RANGE 127)
  math(EXPR y "(${i} - 64) * (${i} - 64)")
  string(APPEND pairs "${i}e-2 ${y}e-4\n")
endforeach()
file(WRITE ${SCRATCH}/pairs.txt "${pairs}")
foreach(ranks 1 2)
  run(${MPIRUN} -n ${ranks} ${SCRATCH}/estimator/own_parts ${SCRATCH}/pairs.txt ${SCRATCH}/own_parts_${ranks})
  set(numbers_${ranks} "${out}")
endforeach()
if(NOT numbers_1 MATCHES "mean slope .*loss [0-9.e-]+, within 0[.]2: (1|0[.]9)" OR NOT numbers_1 STREQUAL numbers_2)
  message(FATAL_ERROR "the numbers on one rank:\n${numbers_1}on two:\n${numbers_2}")
endif()

# The programs of examples/sessions. Those that train have the bits of examples/digits.yaml, on one rank and on three, also in two jobs.
set(example ${SCRATCH}/prefix/share/lockstep/examples/sessions)
set(digits ${SCRATCH}/prefix/share/lockstep/examples/digits.yaml)
build_project(${example} ${SCRATCH}/sessions)
foreach(class session_manager supervisor monitored_session)
  set(run_dir ${SCRATCH}/session_${class})
  run(${MPIRUN} -n 3 ${SCRATCH}/sessions/${class} ${digits} ${run_dir} 12)
  run(${SCRATCH}/sessions/${class} ${digits} ${run_dir} 30)
  run(${program} inspect ${run_dir} --digest)
  if(NOT out STREQUAL digest_1)
    message(FATAL_ERROR "${class} ends with '${out}', the YAML with '${digest_1}'")
  endif()
endforeach()
run(${PYTHON} -B ${SOURCE}/tests/consumer/supervisor_test.py ${SCRATCH}/sessions/supervisor ${program} ${digits} ${SCRATCH}/supervised ${MPIRUN})
run(${program} evaluate ${SCRATCH}/session_supervisor)
if(NOT out MATCHES "\"global_step\": *30")
  message(FATAL_ERROR "the output of evaluate is: ${out}")
endif()
foreach(ranks 1 3)
  run(${MPIRUN} -n ${ranks} ${SCRATCH}/sessions/run_context ${digits} 12)
  set(numbers_${ranks} "${out}")
endforeach()
if(NOT numbers_1 MATCHES "step 12: loss [0-9.]+; 297 held-out samples: loss" OR NOT numbers_1 STREQUAL numbers_3)
  message(FATAL_ERROR "the numbers on one rank:\n${numbers_1}on three:\n${numbers_3}")
endif()
run(${SCRATCH}/sessions/coordinator)
if(NOT out MATCHES "300 steps: yes\nthread 'reader': the sensor is broken")
  message(FATAL_ERROR "coordinator printed: ${out}")
endif()
run(${SCRATCH}/sessions/looper_thread)
if(NOT out MATCHES "called 5 times, the report at least once: yes")
  message(FATAL_ERROR "looper_thread printed: ${out}")
endif()
run(${SCRATCH}/sessions/queue_runner ${SCRATCH}/prefix/share/lockstep/data/digits.csv.gz ${digits})
if(NOT out MATCHES "^18[0-9][0-9] rows, 1[0-9]+ columns")
  message(FATAL_ERROR "queue_runner printed: ${out}")
endif()

# A hook as a plugin, loaded by the installed program.
set(example ${SCRATCH}/prefix/share/lockstep/examples/hook_plugin)
build_project(${example} ${SCRATCH}/hook_plugin)
run(${program} train ${SCRATCH}/prefix/share/lockstep/examples/digits.yaml --steps 3 --run-dir ${SCRATCH}/plugin
    --set plugins=${SCRATCH}/hook_plugin/libheartbeat.so --set hooks=[heartbeat])
file(READ ${SCRATCH}/plugin/heartbeat heartbeat)
if(NOT heartbeat STREQUAL "finished 3\n")
  message(FATAL_ERROR "the hook of the plugin wrote '${heartbeat}'")
endif()

# A layer and a function as a plugin.
set(example ${SCRATCH}/prefix/share/lockstep/examples/layer_plugin)
build_project(${example} ${example}/build)
run(${example}/build/swish_test)
run(${program} train ${example}/digits.yaml --steps 3 --run-dir ${SCRATCH}/layer_plugin)
run(${program} evaluate ${SCRATCH}/layer_plugin)
if(NOT out MATCHES "\"global_step\": *3")
  message(FATAL_ERROR "the output of evaluate is: ${out}")
endif()

# The plugin of docs/adding_a_layer.md, built with the page's CMakeLists.txt.
set(page ${SCRATCH}/adding_a_layer)
run(${PYTHON} -B ${SOURCE}/tests/guides/guide.py ${SOURCE}/docs/adding_a_layer.md ${page})
build_project(${page} ${page}/build)
run(${page}/build/channel_scale_test)
run(${program} train ${SCRATCH}/prefix/share/lockstep/examples/digits.yaml --steps 3 --run-dir ${SCRATCH}/channel_scale
    --set plugins=${page}/build/libchannel_scale.so
    --set "model.layers=[flatten, dense: {units: 64}, channel_scale: {name: scale1}, relu, dense: {units: 10}]")

# Uninstalling leaves nothing but what was built in the installed examples.
file(REMOVE_RECURSE ${SCRATCH}/prefix/share/lockstep/examples/layer_plugin/build)
run(${CMAKE_COMMAND} --build ${BUILD} --target uninstall)
file(GLOB_RECURSE left ${SCRATCH}/prefix/*)
if(left OR EXISTS ${SCRATCH}/prefix/share/lockstep)
  message(FATAL_ERROR "left after the uninstallation: ${left}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
