/* Calls the program NAME: arguments from argv[1], results to argv[2], constants from argv[3]; a limit on its memory is argv[4].
   Of each array: sizes, bytes, data. */
#include HEADER

#include <stdio.h>
#include <stdlib.h>

#define JOIN(a, b) a##b
#define OF(name, what) JOIN(name, what)

int main(int count, char **argv) {
  ral_array inputs[INPUTS + 1], outputs[OUTPUTS + 1];
  char message[1000] = "";
  ral_program *program = OF(NAME, _open)(count > 3 ? argv[3] : NULL, message, sizeof message);
  if (program == NULL) return fprintf(stderr, "%s\n", message), 1;
  if (count > 4) ral_limit_memory(program, atoll(argv[4]));
  FILE *given = fopen(argv[1], "rb"), *made = fopen(argv[2], "wb");
  int64_t bytes, runs;
  if (!given || !made || fread(&runs, 8, 1, given) != 1) return 2;
  for (; runs; --runs) {
    for (int i = 0; i < INPUTS; ++i) {
      if (fread(inputs[i].sizes, 8, RAL_MAX_RANK, given) != RAL_MAX_RANK || fread(&bytes, 8, 1, given) != 1) return 2;
      inputs[i].data = aligned_alloc(16, (size_t)bytes / 16 * 16 + 16);
      if (fread(inputs[i].data, 1, (size_t)bytes, given) != (size_t)bytes) return 2;
    }
    int failed = OF(NAME, _run)(program, inputs, outputs, message, sizeof message);
    fwrite(failed ? "-" : "+", 1, 1, made);
    if (failed) fprintf(stderr, "%s\n", message);
    for (int i = 0; i < OUTPUTS && !failed; ++i) {
      static const int64_t ranks[] = RANKS, sizes[] = BYTES;
      bytes = sizes[i];
      for (int dim = 0; dim < ranks[i]; ++dim) bytes *= outputs[i].sizes[dim];
      fwrite(outputs[i].sizes, 8, (size_t)ranks[i], made);
      fwrite(outputs[i].data, 1, (size_t)bytes, made);
      OF(NAME, _free)(&outputs[i]);
    }
    for (int i = 0; i < INPUTS; ++i) free(inputs[i].data);
  }
  ral_close(program);
  return fclose(made) || fclose(given);
}
