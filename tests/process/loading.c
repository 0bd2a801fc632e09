/* A program with libtd.a in it, which goes to another folder and asks for a GPU: what does td load?
 * usage: loading FOLDER */
#include <stdio.h>
#include <unistd.h>

#include <sys/auxv.h>

#include <td/td.h>

int main(int argc, char **argv) {
  char why[1024] = "";
  td_context *context = NULL;
  if (argc != 2 || chdir(argv[1]) != 0) {
    fprintf(stderr, "usage: loading FOLDER\n");
    return 2;
  }
  if (td_context_create("cuda", NULL, &context) < 0)
    td_last_error(why, sizeof why);
  td_context_destroy(context);
  printf("cuda=%d secure=%lu %s\n", (int)td_has_feature("cuda"), getauxval(AT_SECURE), why);
  return 0;
}
