/* A library that leaves a file where it is loaded: its path is in INTRUDER_MARK. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void mark(void) {
  const char *path = getenv("INTRUDER_MARK");
  const int file = path == NULL ? -1 : open(path, O_CREAT | O_WRONLY, 0600);
  if (file >= 0)
    close(file);
}
