/* Memory of a rank's own, as these programs compute in it: zeroed, and on pages of its own. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static double *doubles(long count) {
  double *memory = NULL;
  if (posix_memalign((void **)&memory, PAGE, sizeof(double) * (count > 0 ? count : 1))) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(memory, 0, sizeof(double) * count);
  return memory;
}
