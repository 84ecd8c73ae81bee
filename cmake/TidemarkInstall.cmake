# cmake --install puts headers under include/tidemark with their paths in the repository, so that
# after find_package(tidemark) `#include "runtime/core/units.h"` reads as it does here.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY TIDEMARK_LIBRARIES)

# Everything at once; link single folders (tidemark::runtime_memory) to take less.
add_library(tidemark_all INTERFACE)
add_library(tidemark::tidemark ALIAS tidemark_all)
set_target_properties(tidemark_all PROPERTIES EXPORT_NAME tidemark)
target_link_libraries(tidemark_all INTERFACE ${libraries})

install(TARGETS ${libraries} tidemark_all EXPORT tidemark-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(folder runtime ops models)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/${folder}/*.h ${PROJECT_SOURCE_DIR}/${folder}/*.cuh)
  list(FILTER headers EXCLUDE REGEX "^runtime/planner/papers/")  # no installed library has them
  foreach(header ${headers})
    get_filename_component(path ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION include/tidemark/${path})
  endforeach()
endforeach()

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidemark)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tidemark-config.cmake.in
  ${PROJECT_BINARY_DIR}/tidemark-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tidemark-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tidemark-config.cmake
              ${PROJECT_BINARY_DIR}/tidemark-config-version.cmake DESTINATION ${config_dir})
install(EXPORT tidemark-targets NAMESPACE tidemark:: DESTINATION ${config_dir})
