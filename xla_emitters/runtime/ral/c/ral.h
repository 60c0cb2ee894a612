/* Programs of xla-emitters in C: what all of them share. For GCC and Clang, C11, with libm.

   A program NAME is NAME.h, NAME.c, NAME.o and NAME.bin; these, ral.h and ral.c need nothing else. */
#ifndef RAL_H
#define RAL_H

#include <stddef.h>
#include <stdint.h>

enum { RAL_MAX_RANK = 16 };

/* An array, row major: its elements, and the size of each dimension. Truth values are bytes of 0 and 1. */
typedef struct {
  void *data;
  int64_t sizes[RAL_MAX_RANK];
} ral_array;

/* Where a message is written: `size` bytes. */
typedef struct {
  char *text;
  size_t size;
} ral_error;

typedef struct ral_program ral_program;

/* A function that a program calls by its full name, e.g. "ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void".
   args[k] points to argument k; a buffer is 3 + 2 rank of them: where it was allocated, its elements, 0, sizes, strides (int64_t).
   Returns NULL, or a message. */
typedef const char *(*ral_function)(void **args);

/* Replaces a function of ral.c, such as a product by that of a BLAS. Not while the program runs. Returns 0, or 1 without memory. */
int ral_register(ral_program *program, const char *name, ral_function function);

/* A run may allocate at most so many bytes at a time; by default as many as malloc gives. Not while the program runs. */
void ral_limit_memory(ral_program *program, int64_t bytes);

/* Frees the program; results stay. */
void ral_close(ral_program *program);

/* ---- below: for NAME.c ---- */

typedef __int128 ral_wide;

/* What the host program hands to each function: `runtime` is of ral.c; a function that fails sets the status. */
typedef struct ral_context {
  struct call *runtime;
  void (*function)(struct ral_context *context, const char *name, void **args);
  int64_t status;
} ral_context;

/* A kernel: `run` takes its arguments, the range of its blocks, and memory of a block. */
typedef struct {
  const char *name;
  void (*run)(int64_t *words);
} ral_kernel;

typedef struct {
  int64_t offset, stored, bytes; /* in NAME.bin; `stored` bytes are repeated */
  uint64_t hash;                 /* FNV-1a of what is stored */
} ral_constant;

typedef struct {
  const char *name;
  int inputs, outputs, constants, texts, kernels;
  const int *input_ranks, *input_bytes, *is_owned; /* of each argument: dimensions, bytes of an element, whether the program owns it */
  const ral_kernel *kernel;
  const ral_constant *constant;
  const char *const *text; /* name of an assertion, its message, and so on */
  int (*check)(const ral_array *inputs, ral_error *error);
  void (*main)(ral_context *context);
} ral_description;

/* NULL, with a message, where the constants cannot be read. */
ral_program *ral_open(const ral_description *description, const char *constants, char *message, size_t size);
/* 0, or 1 with a message. */
int ral_run(const ral_program *program, const ral_array *inputs, ral_array *outputs, char *message, size_t size);
/* Frees a result. */
void ral_free(void *data);
/* Writes the text, with values for {0}, {1} ...; returns 1. */
int ral_fail(ral_error *error, const char *text, int count, const int64_t *values);
ral_wide ral_floordiv(ral_wide a, ral_wide b);
ral_wide ral_mod(ral_wide a, ral_wide b);
ral_wide ral_max(ral_wide a, ral_wide b);
ral_wide ral_min(ral_wide a, ral_wide b);

#endif
