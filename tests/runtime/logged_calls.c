/* Runs the program of SOURCE and logs its calls of the runtime: a line for each, like `runtime/ral/host_program`. Arguments from argv[1],
   results to argv[2], constants from argv[3], the log to argv[4]; files as caller.c has them. */
#include "ral.c"
#include SOURCE

static FILE *out;

static void show(const char *name, void **args) {
  int has_values = 0; /* a context and a stream come first; a text is behind the values */
  struct arguments left = {strstr(strstr(name, "___") + 3, "___") + 3, args};
  const char *end = strstr(left.types, "___");
  fputs(name, out);
  while (left.types < end) {
    struct argument part = next(&left);
    if (*part.code == 'm') {
      fputs(" [", out);
      for (int dim = 0; dim < part.rank; ++dim) fprintf(out, "%s%lld", dim ? "," : "", (long long)at(part.args, 3 + dim));
      fputs("]", out);
    } else if (*part.code != 'p') {
      fprintf(out, " %lld", (long long)number_of(part));
    } else if (has_values) {
      fprintf(out, " %s", *(const char **)part.args[0]);
    }
    has_values |= *part.code != 'p';
  }
  fputs("\n", out);
}

static void logged(ral_context *context, const char *name, void **args) {
  show(name, args);
  serve(context, name, args);
}

int main(int count, char **argv) {
  const ral_description *is = &description;
  ral_array *inputs = calloc((size_t)is->inputs + 1, sizeof *inputs), *outputs = calloc((size_t)is->outputs + 1, sizeof *outputs);
  const void **given = calloc((size_t)is->inputs + 1, sizeof *given);
  char message[1000] = "";
  ral_program *program = count == 5 ? ral_open(is, argv[3], message, sizeof message) : NULL;
  if (program == NULL) return fprintf(stderr, "%s\n", message), 1;
  FILE *from = fopen(argv[1], "rb"), *made = fopen(argv[2], "wb");
  int64_t bytes, runs;
  out = fopen(argv[4], "w");
  if (!from || !made || !out || fread(&runs, 8, 1, from) != 1) return 2;
  for (; runs; --runs) {
    struct call call = {program, {message, sizeof message}, given, outputs, NULL, 0};
    ral_context context = {&call, logged, 0};
    for (int i = 0; i < is->inputs; ++i) {
      given[i] = &inputs[i];
      if (fread(inputs[i].sizes, 8, RAL_MAX_RANK, from) != RAL_MAX_RANK || fread(&bytes, 8, 1, from) != 1) return 2;
      inputs[i].data = aligned(bytes);
      if (fread(inputs[i].data, 1, (size_t)bytes, from) != (size_t)bytes) return 2;
    }
    if (is->check(inputs, &call.error) == 0) is->main(&context);
    else context.status = 1;
    fwrite(context.status ? "-" : "+", 1, 1, made);
    fputs("end\n", out);
    if (context.status) return fprintf(stderr, "%s\n", message), 1;
    for (int i = 0; i < is->outputs; ++i) {
      static const int64_t ranks[] = RANKS, sizes[] = BYTES;
      bytes = sizes[i];
      for (int dim = 0; dim < ranks[i]; ++dim) bytes *= outputs[i].sizes[dim];
      fwrite(outputs[i].sizes, 8, (size_t)ranks[i], made);
      fwrite(outputs[i].data, 1, (size_t)bytes, made);
      ral_free(outputs[i].data);
    }
    if (call.buffers) return fprintf(stderr, "%lld bytes were not freed\n", (long long)call.bytes), 1;
    for (int i = 0; i < is->inputs; ++i) free(inputs[i].data);
  }
  ral_close(program);
  free(inputs);
  free(outputs);
  free(given);
  return fclose(made) || fclose(out) || fclose(from);
}
