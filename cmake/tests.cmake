# The core's tests: each *_test.cc beside the code is one program and one ctest entry.
find_package(GTest REQUIRED)
set(TORCH_TPU_TEST_PLUGINS "" CACHE STRING "PJRT plugins that the tests run on, separated by colons")
set(TORCH_TPU_TEST_LIBTPU "" CACHE FILEPATH "libtpu.so for the tests that compile for TPUs")

set(patience 900)  # seconds
if(TORCH_TPU_SANITIZE)
  set(patience 3600)
endif()
set(compile_leaks "")  # of the plugins, where programs of every kind are compiled
if(TORCH_TPU_SANITIZE STREQUAL "address")
  set(compile_leaks "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp")
endif()

set(src ${PROJECT_SOURCE_DIR}/src)
file(GLOB_RECURSE tests CONFIGURE_DEPENDS RELATIVE ${src} ${src}/*_test.cc)
file(GLOB compile_cases CONFIGURE_DEPENDS ${src}/hlo/compile_cases_*.cc)
foreach(source IN LISTS tests)
  string(REPLACE "/" "_" name ${source})
  string(REPLACE ".cc" "" name ${name})
  add_executable(${name} ${src}/${source})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  target_link_libraries(${name} PRIVATE tpu_exec tpu_client GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set(environment "TORCH_TPU_TEST_PLUGINS=${TORCH_TPU_TEST_PLUGINS}")
  if(TORCH_TPU_TEST_LIBTPU)
    list(APPEND environment "TORCH_TPU_TEST_LIBTPU=${TORCH_TPU_TEST_LIBTPU}")
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT ${patience})
endforeach()
set_property(TEST hlo_hlo_compile_test APPEND PROPERTY ENVIRONMENT ${compile_leaks})
set_tests_properties(hlo_hlo_compile_test PROPERTIES LABELS slow)  # a compile for each op
target_sources(hlo_hlo_compile_test PRIVATE ${compile_cases})
if(TORCH_TPU_PJRT_HEADER_DIR)
  target_include_directories(pjrt_c_api_contract_test SYSTEM PRIVATE ${TORCH_TPU_PJRT_HEADER_DIR})
endif()

# Values of operators: each file of tests/cases is one ctest entry for each plugin.
set(cases ${PROJECT_SOURCE_DIR}/tests/cases)
add_library(case_files STATIC ${cases}/runner/case_file.cc ${cases}/runner/elements.cc
  ${cases}/runner/run_case.cc ${cases}/runner/schema.cc)
target_compile_options(case_files PRIVATE -Wall -Wextra -Werror
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(case_files PUBLIC ${cases})
target_link_libraries(case_files PUBLIC tpu_exec)
add_executable(case_runner ${cases}/runner/main.cc)
target_link_libraries(case_runner PRIVATE case_files GTest::gtest)
add_executable(case_runner_test ${cases}/runner/runner_test.cc)
target_link_libraries(case_runner_test PRIVATE case_files GTest::gtest_main)
string(REPLACE ":" ";" plugins "${TORCH_TPU_TEST_PLUGINS}")
if(NOT plugins)
  set(plugins none)  # the runner says what to set
endif()
list(GET plugins 0 first)
add_test(NAME case_runner_test COMMAND case_runner_test)
set_tests_properties(case_runner_test PROPERTIES TIMEOUT ${patience}
  ENVIRONMENT "TORCH_TPU_TEST_PLUGINS=${first}")
file(GLOB case_files CONFIGURE_DEPENDS ${cases}/*.case)
foreach(plugin IN LISTS plugins)
  get_filename_component(folder "${plugin}" DIRECTORY)
  get_filename_component(package "${folder}" NAME)
  set(environment "TORCH_TPU_TEST_PLUGINS=${plugin}" ${compile_leaks})
  add_test(NAME cases_in_threads.${package} COMMAND case_runner --threads
    ${cases}/compare.case ${cases}/copy.case ${cases}/scatter.case)
  set_tests_properties(cases_in_threads.${package} PROPERTIES TIMEOUT ${patience}
    ENVIRONMENT "${environment}")
  foreach(file IN LISTS case_files)
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME cases_${name}.${package} COMMAND case_runner ${file})
    set_tests_properties(cases_${name}.${package} PROPERTIES TIMEOUT ${patience}
      ENVIRONMENT "${environment}")
  endforeach()
endforeach()
