/* The MPI library's name and version, fit for a JSON string. */
#include <mpi.h>
#include <string.h>

static const char *library_name(void) {
  static char name[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(name, &length);
  name[strcspn(name, "\n,")] = '\0';
  for (char *c = name; *c; c++) {
    if (*c < ' ' || *c == '"' || *c == '\\') *c = ' ';
  }
  return name;
}
