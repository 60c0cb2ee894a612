/* Runs the program of SOURCE, whose calls of the runtime all go by name, and logs them: a line for each, like `runtime/ral/host_program`.
   Arguments from argv[1], results to argv[2], constants from argv[3], the log to argv[4]; files as caller.c has them. Products, convolutions
   and assertions are ral.c's; buffers, constants, copies and launches are here, in the simplest form. CALLED has the names of the kernels,
   and which arguments the program owns. */
#include "ral.c"
#include SOURCE
#include CALLED

static FILE *out;
static int64_t live;

struct part {
  char code[32]; /* of its type */
  void **args;
};

/* The arguments in a name, from `types` on up to "___". Returns what is behind them. */
static void **split(const char *types, void **args, struct part *parts, int *count) {
  for (*count = 0;; ++*count) {
    size_t length = strcspn(types, "_");
    snprintf(parts[*count].code, sizeof parts->code, "%.*s", (int)length, types);
    parts[*count].args = args;
    if (!strcmp(parts[*count].code, "void")) return args;
    args += parts[*count].code[0] == 'm' ? 3 + 2 * atoi(parts[*count].code + 1) : 1;
    types += length;
    if (types[0] == 0 || types[1] == '_') return ++*count, args;
    ++types;
  }
}

static int is_buffer(const struct part *part) { return part->code[0] == 'm'; }
static int rank_of(const struct part *part) { return atoi(part->code + 1); }
static size_t bytes_each(const struct part *part) {
  const char *type = strchr(part->code, 'd') + 1;
  return strncmp(type, "f8", 2) ? bytes_of(type) : 1;
}

static int64_t number_of(const struct part *part) {
  const void *at = part->args[0];
  if (!strcmp(part->code, "i64") || !strcmp(part->code, "ui64")) return *(const int64_t *)at;
  if (!strcmp(part->code, "i32") || !strcmp(part->code, "ui32")) return *(const int32_t *)at;
  if (!strcmp(part->code, "i1")) return *(const uint8_t *)at != 0;
  fprintf(stderr, "a number of type %s\n", part->code);
  exit(3);
}

static void show(const char *name, const struct part *parts, int count) {
  int has_values = 0; /* a context and a stream come first; a text is behind the values */
  fputs(name, out);
  for (int number = 0; number < count; ++number) {
    const struct part *part = &parts[number];
    if (is_buffer(part)) {
      fputs(" [", out);
      for (int dim = 0; dim < rank_of(part); ++dim)
        fprintf(out, "%s%lld", dim ? "," : "", (long long)*(int64_t *)part->args[3 + dim]);
      fputs("]", out);
    } else if (strcmp(part->code, "pvoid")) {
      fprintf(out, " %lld", (long long)number_of(part));
    } else if (has_values) {
      fprintf(out, " %s", *(const char **)part->args[0]);
    }
    has_values |= strcmp(part->code, "pvoid") != 0;
  }
  fputs("\n", out);
}

/* A buffer with one reference; the number of them is in front of it. */
static void *fresh(int64_t bytes) {
  int64_t *made = aligned(bytes + 64);
  if (made == NULL) exit(4);
  memset(made, 0xFF, (size_t)bytes + 64);
  made[0] = 1;
  ++live;
  return (char *)made + 64;
}

static int64_t *references(void *data) { return (int64_t *)(void *)((char *)data - 64); }

static void store(void **slots, int rank, void *allocated, void *data, const int64_t *sizes) {
  int64_t stride = 1;
  *(void **)slots[0] = allocated;
  *(void **)slots[1] = data;
  *(int64_t *)slots[2] = 0;
  for (int dim = rank - 1; dim >= 0; --dim) {
    *(int64_t *)slots[3 + dim] = sizes[dim];
    *(int64_t *)slots[3 + rank + dim] = stride;
    stride *= sizes[dim];
  }
}

static int64_t product(const int64_t *sizes, int rank) {
  int64_t found = 1;
  for (int dim = 0; dim < rank; ++dim) found *= sizes[dim];
  return found;
}

static void launch(const struct part *parts, int count) {
  const char *name = *(const char **)parts[count - 1].args[0];
  int64_t words[64], blocks = number_of(&parts[2]), shared = number_of(&parts[8]);
  int used = 0;
  for (int number = 9; number < count - 1; ++number)
    words[used++] = is_buffer(&parts[number]) ? *(int64_t *)parts[number].args[1] : number_of(&parts[number]);
  void *scratch = aligned(shared);
  words[used++] = 0;
  words[used++] = blocks;
  words[used++] = (int64_t)(uintptr_t)scratch;
  for (size_t number = 0; number < sizeof kernels / sizeof *kernels; ++number)
    if (kernels[number].name && !strcmp(kernels[number].name, name)) {
      if (blocks) kernels[number].run(words);
      free(scratch);
      return;
    }
  fprintf(stderr, "no kernel %s\n", name);
  exit(3);
}

static void logged(ral_context *context, const char *name, void **args) {
  struct part parts[128], results[4];
  int count, made, rank;
  int64_t sizes[RAL_MAX_RANK] = {0};
  const char *device = strstr(name, "___"), *types = strstr(device + 3, "___") + 3;
  void **behind = split(types, args, parts, &count);
  split(strstr(types, "___") + 3, behind, results, &made);
  show(name, parts, count);
  size_t length = (size_t)(device - name);
#define IS(text) (length == sizeof text - 1 && !strncmp(name, text, length))
  if (IS("alloc")) {
    rank = rank_of(&results[0]);
    for (int dim = 0; dim < rank; ++dim) sizes[dim] = number_of(&parts[1 + dim]);
    void *data = fresh(product(sizes, rank) * (int64_t)bytes_each(&results[0]));
    store(results[0].args, rank, data, data, sizes);
  } else if (IS("dealloc")) {
    void *data = *(void **)parts[1].args[0];
    if (data && --*references(data) == 0) {
      free(references(data));
      --live;
    }
  } else if (IS("inc_ref")) {
    void *allocated = *(void **)parts[1].args[0];
    rank = rank_of(&results[0]);
    for (int dim = 0; dim < rank; ++dim) sizes[dim] = number_of(&parts[2 + dim]);
    if (allocated) ++*references(allocated);
    store(results[0].args, rank, allocated, *(void **)parts[1].args[1], sizes);
  } else if (IS("h2d") || IS("d2h") || IS("d2d") || IS("h2h")) {
    for (int dim = 0; dim < rank_of(&parts[2]); ++dim) sizes[dim] = *(int64_t *)parts[2].args[3 + dim];
    size_t bytes = (size_t)product(sizes, rank_of(&parts[2])) * bytes_each(&parts[2]);
    memmove(*(void **)parts[3].args[1], *(void **)parts[2].args[1], bytes);
  } else if (IS("sync_on_stream")) {
  } else if (IS("ral_const")) {
    const char *text = strrchr(*(const char **)parts[3].args[0], '_');
    rank = rank_of(&results[0]);
    for (int dim = 0; dim < rank; ++dim) sizes[dim] = strtoll(text + 1, (char **)&text, 10);
    store(results[0].args, rank, NULL, context->constants[number_of(&parts[2])], sizes);
  } else if (IS("ral_kernel_launch")) {
    launch(parts, count);
  } else if (IS("ral_recv_input")) {
    int64_t number = number_of(&parts[1]);
    const ral_array *given = context->inputs[number];
    void *data = given->data, *allocated = NULL;
    rank = rank_of(&results[0]);
    if (donated[number]) {
      size_t bytes = (size_t)product(given->sizes, rank) * bytes_each(&results[0]);
      allocated = memcpy(fresh((int64_t)bytes), data, bytes);
      data = allocated;
    }
    store(results[0].args, rank, allocated, data, given->sizes);
  } else if (IS("ral_send_output")) {
    ral_array *result = context->outputs[number_of(&parts[1])];
    result->data = *(void **)parts[2].args[1];
    if (*references(*(void **)parts[2].args[0]) != 1) exit(5);
    for (int dim = 0; dim < rank_of(&parts[2]); ++dim) result->sizes[dim] = *(int64_t *)parts[2].args[3 + dim];
  } else {
    serve(context, name, args);
  }
}

int main(int count, char **argv) {
  const ral_description *is = &description;
  ral_array *inputs = calloc((size_t)is->inputs + 1, sizeof *inputs), *outputs = calloc((size_t)is->outputs + 1, sizeof *outputs);
  const void **given = calloc((size_t)is->inputs + 1, sizeof *given);
  void **results = calloc((size_t)is->outputs + 1, sizeof *results);
  char message[1000] = "";
  ral_program *program = count == 5 ? ral_open(is, argv[3], message, sizeof message) : NULL;
  if (program == NULL) return fprintf(stderr, "%s\n", message), 1;
  FILE *from = fopen(argv[1], "rb"), *made = fopen(argv[2], "wb");
  int64_t bytes, runs;
  out = fopen(argv[4], "w");
  if (!from || !made || !out || fread(&runs, 8, 1, from) != 1) return 2;
  for (; runs; --runs) {
    struct call call = {program, {message, sizeof message}};
    ral_context context = {&call, logged, 0, given, results, program->constants, 0, NULL, 0, 0, 0, INT64_MAX};
    for (int i = 0; i < is->inputs; ++i) {
      given[i] = &inputs[i];
      if (fread(inputs[i].sizes, 8, RAL_MAX_RANK, from) != RAL_MAX_RANK || fread(&bytes, 8, 1, from) != 1) return 2;
      inputs[i].data = aligned(bytes);
      if (fread(inputs[i].data, 1, (size_t)bytes, from) != (size_t)bytes) return 2;
    }
    for (int i = 0; i < is->outputs; ++i) results[i] = &outputs[i];
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
      free(references(outputs[i].data));
      --live;
    }
    if (live) return fprintf(stderr, "%lld buffers were not freed\n", (long long)live), 1;
    for (int i = 0; i < is->inputs; ++i) free(inputs[i].data);
  }
  ral_close(program);
  free(inputs);
  free(outputs);
  free(given);
  free(results);
  return fclose(made) || fclose(out) || fclose(from);
}
