# Installs the core as the CMake package torch_tpu: its static libraries, and the public headers under
# include/torch_tpu. find_package(torch_tpu), then link tpu::core.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/torch_tpu)

# What programs link: the public C++ interface with all below it.
add_library(tpu_core INTERFACE)
target_link_libraries(tpu_core INTERFACE tpu_client)
set_target_properties(tpu_core PROPERTIES EXPORT_NAME core)
target_include_directories(tpu_base INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
foreach(layer base shape hlo pjrt runtime client)
  set_target_properties(tpu_${layer} PROPERTIES EXPORT_NAME ${layer})
endforeach()
install(TARGETS tpu_core tpu_base tpu_shape tpu_hlo tpu_pjrt tpu_runtime tpu_client
        EXPORT torch_tpu COMPONENT core)
install(EXPORT torch_tpu NAMESPACE tpu:: DESTINATION ${package_dir} FILE torch_tpu-targets.cmake
        COMPONENT core)

# Inside the project headers are named from src/. Installed, the few that the public ones need move
# under torch_tpu/core/, so that no "base/..." lands on anyone's include path.
set(public_headers client.h hlo.h)
set(core_headers base/status.h hlo/hlo.h shape/dims.h shape/dtype.h)
foreach(header IN LISTS public_headers core_headers)
  if(header IN_LIST public_headers)
    set(from ${PROJECT_SOURCE_DIR}/include/torch_tpu/${header})
    set(to ${header})
  else()
    set(from ${PROJECT_SOURCE_DIR}/src/${header})
    set(to core/${header})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
  file(READ ${from} text)
  foreach(core_header IN LISTS core_headers)
    string(REPLACE "#include \"${core_header}\"" "#include \"torch_tpu/core/${core_header}\"" text
           "${text}")
  endforeach()
  file(CONFIGURE OUTPUT include/torch_tpu/${to} CONTENT "${text}" @ONLY)
endforeach()
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/include/torch_tpu
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT core)

file(CONFIGURE OUTPUT torch_tpu-config.cmake @ONLY CONTENT [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/torch_tpu-targets.cmake)
]])
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/torch_tpu-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/torch_tpu-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/torch_tpu-config-version.cmake
        DESTINATION ${package_dir} COMPONENT core)
