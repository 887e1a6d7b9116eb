/* SPDX-License-Identifier: MIT */
/* cpu/conv_winograd.c: convolutions with 3 x 3 kernels by Winograd's algorithm.
 *
 * A tile of 2 x 2 results takes 36 products for each pair of channels; of transformed tiles of 4 x
 * 4 and transformed kernels it takes 16, one for each element. So there are 16 products of
 * matrices, [tiles, channels] x [channels, channels], between two cheap transforms; with strides of
 * 2 tiles are 5 x 5, and it takes 25. Measured for
 * normally distributed data the error is one to two times that of adding up products in float32;
 * tiles of 4 x 4 results would take 36 products instead of 144, but with twenty times the error.
 * Sums with infinities in between are not what they should be, though: when any result is not
 * finite the caller computes it all in the other way.
 *
 * Some rows of tiles are a piece of work that one thread does from input to result, in memory that
 * stays in its cache. */
#include <stdatomic.h>
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/conv.h"
#include "cpu/ready.h"
#include "cpu/winograd.h"

#define OUT         TNI_WINOGRAD_OUT
#define PIECE_BYTES (INT64_C(3) << 19) /* of transformed tiles, about */
#define PIECE_TILES 98
#define PANEL       32 /* channels of the result that products take at a time */
/* Below, transforming the kernels costs more than it saves. */
#define LEAST_TILES    128
#define LEAST_CHANNELS 16
/* With strides less is saved, and there are more transformed kernels. */
#define STRIDED_TILES    320
#define STRIDED_CHANNELS 64

typedef struct winograd_job {
    const tni_winograd_loops *loops;
    const tni_conv *c;
    int64_t high, wide;     /* tiles of an image */
    int64_t low[2];         /* place of the input that the first tile begins with */
    int64_t rows, each;     /* rows of tiles of all images, and of a piece */
    int64_t line;           /* of a row of tiles: places of the input */
    int64_t panel;          /* channels of the result whose kernels lie together */
    int64_t widest;         /* floats of the lines that a row of tiles sees or makes */
    size_t room;            /* floats of scratch memory of one thread */
    int threads;            /* that have some */
    float *kernels, *rooms; /* transformed kernels; scratch memory, thread by thread */
    const float *input, *weight, *bias;
    float *out;
    atomic_bool odd; /* a result is not finite */
} winograd_job;

static int64_t up(int64_t n)
{
    return (n + OUT - 1) / OUT;
}

/* With a stride of 2: each tile takes 25 products instead of 9 for each of its places, and those at
 * the edges may have half as many. */
static bool strided_pays(const tni_conv *c, int64_t tiles)
{
    int64_t places = c->batch * c->out[1] * c->out[2];
    return tiles >= STRIDED_TILES && c->in_channels >= STRIDED_CHANNELS &&
           c->out_channels >= STRIDED_CHANNELS && 25 * tiles / 5 <= 9 * places / 6;
}

bool tni_conv_winograd(const tni_conv *c, tn_dtype dtype)
{
    bool fits = dtype == TN_DTYPE_F32 && c->groups == 1 && c->in_channels >= LEAST_CHANNELS &&
                c->out_channels >= LEAST_CHANNELS && c->in[0] == 1 && c->out[0] == 1 &&
                c->kernel[0] == 1 && c->padding[0] == 0 && c->kernel[1] == 3 && c->kernel[2] == 3;
    for (int i = 0; i < 3; i++)
        fits = fits && c->dilation[i] == 1;
    if (!fits || c->stride[0] != 1 || c->stride[1] != c->stride[2])
        return false;
    int64_t tiles = c->batch * up(c->out[1]) * up(c->out[2]);
    if (c->stride[1] == 2)
        return !c->transposed && strided_pays(c, tiles);
    return c->stride[1] == 1 && tiles >= LEAST_TILES;
}

static tn_status transform_kernels(int64_t begin, int64_t end, void *arg)
{
    winograd_job *j = arg;
    int64_t n = j->c->in_channels * j->c->out_channels;
    j->loops->kernel(j->kernels + begin, n, j->weight + begin, n, end - begin, j->c->transposed);
    return TN_OK;
}

/* What row @p row of tiles sees of the input: IN lines of places by channels, 0 outside. */
static void gather_lines(const winograd_job *j, int64_t row, float *to)
{
    const tni_conv *c = j->c;
    int64_t channels = c->in_channels, places = c->in[1] * c->in[2];
    const float *image = j->input + row / j->high * channels * places;
    int64_t before = j->low[1] < 0 ? -j->low[1] : 0, first = j->low[1] + before;
    int64_t count = c->in[2] - first < j->line - before ? c->in[2] - first : j->line - before;
    for (int64_t i = 0; i < j->loops->in; i++, to += j->line * channels) {
        int64_t y = row % j->high * j->loops->step + i + j->low[0];
        if (y < 0 || y >= c->in[1] || count <= 0) {
            memset(to, 0, (size_t)(j->line * channels) * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)(before * channels) * sizeof *to);
        float *at = to + before * channels;
        if (c->channels_last)
            memcpy(at, image + (y * c->in[2] + first) * channels,
                   (size_t)(count * channels) * sizeof *to);
        else
            j->loops->turn(at, channels, image + y * c->in[2] + first, places, channels, count);
        memset(at + count * channels, 0,
               (size_t)((j->line - before - count) * channels) * sizeof *to);
    }
}

/* The results of row @p row of tiles. @p side is room for them where channels are not last. */
static bool put_lines(const winograd_job *j, int64_t row, const float *from, int64_t plane,
                      float *side)
{
    const tni_conv *c = j->c;
    int64_t channels = c->out_channels, places = c->out[1] * c->out[2], y = row % j->high * OUT;
    int64_t rows = c->out[1] - y < OUT ? c->out[1] - y : OUT;
    float *image = j->out + row / j->high * channels * places;
    float *to = c->channels_last ? image + y * c->out[2] * channels : side;
    bool finite = true;
    for (int64_t t = 0; t < j->wide; t++) {
        int64_t x = t * OUT, columns = c->out[2] - x < OUT ? c->out[2] - x : OUT;
        finite &=
            j->loops->output(to + x * channels, c->out[2] * channels, channels, from + t * channels,
                             plane, channels, (int)rows, (int)columns, j->bias);
    }
    if (!c->channels_last)
        j->loops->turn(image + y * c->out[2], places, side, channels, rows * c->out[2], channels);
    return finite;
}

static tn_status run_piece(winograd_job *j, int64_t first, int64_t rows, float *room)
{
    int64_t in = j->c->in_channels, out = j->c->out_channels, tiles = rows * j->wide;
    const int64_t all = j->loops->all, step = j->loops->step;
    float *lines = room, *x = lines + j->widest, *y = x + all * tiles * in;
    for (int64_t r = 0; r < rows; r++) {
        gather_lines(j, first + r, lines);
        for (int64_t t = 0; t < j->wide; t++)
            j->loops->input(x + (r * j->wide + t) * in, tiles * in, lines + t * step * in,
                            j->line * in, in, in);
    }
    for (int64_t i = 0; i < all; i++) {
        tni_gemm_args g = {.m = tiles,
                           .n = j->panel,
                           .k = in,
                           .batch = out / j->panel,
                           .a = {x + i * tiles * in, in, 1, 0},
                           .b = {j->kernels + i * in * out, j->panel, 1, in * j->panel},
                           .c = {y + i * tiles * out, out, 1, j->panel}};
        g.d = g.c;
        TN_TRY(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(0)));
    }
    bool finite = true;
    for (int64_t r = 0; r < rows; r++)
        finite &= put_lines(j, first + r, y + r * j->wide * out, tiles * out, room);
    if (!finite)
        atomic_store_explicit(&j->odd, true, memory_order_relaxed);
    return TN_OK;
}

static tn_status run_pieces(int64_t begin, int64_t end, void *arg)
{
    winograd_job *j = arg;
    int index = tni_pool_thread_index();
    /* Someone may have set a larger number of threads meanwhile. */
    size_t nbytes = j->room * sizeof(float);
    float *own = index < j->threads ? NULL : tni_block_alloc(nbytes);
    float *room = own ? own : j->rooms + (size_t)index * j->room;
    TN_CHECK(own || index < j->threads, TN_NOMEM, "cannot allocate %zu bytes for a convolution",
             nbytes);
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++) {
        int64_t first = i * j->each, rows = j->rows - first < j->each ? j->rows - first : j->each;
        status = run_piece(j, first, rows, room);
    }
    tni_block_free(own, nbytes);
    return status;
}

/* How many rows of tiles a piece has. Results do not depend on it. */
static int64_t rows_of_piece(const winograd_job *j)
{
    int64_t channels = j->c->in_channels + j->c->out_channels;
    int64_t tiles = PIECE_BYTES / (j->loops->all * channels * (int64_t)sizeof(float));
    if (tiles < PIECE_TILES)
        tiles = PIECE_TILES;
    int64_t rows = tiles / j->wide, share = j->rows / 8; /* some pieces for each thread */
    int64_t least = (PIECE_TILES + j->wide - 1) / j->wide;
    rows = rows < share ? rows : share;
    rows = rows > least ? rows : least;
    /* Alike, and an even number of them: few pieces are not to leave a thread without work. */
    int64_t pieces = j->rows > rows ? ((j->rows + rows - 1) / rows + 1) / 2 * 2 : 1;
    return (j->rows + pieces - 1) / pieces;
}

static tn_status run_all(winograd_job *j)
{
    int64_t in = j->c->in_channels, out = j->c->out_channels;
    j->rows = j->c->batch * j->high;
    j->each = rows_of_piece(j);
    j->line = (j->wide - 1) * j->loops->step + j->loops->in;
    /* Lines of the result take the room of those of the input. */
    int64_t lines = j->loops->in * j->line * in, results = OUT * j->c->out[2] * out;
    j->widest = lines > results ? lines : results;
    size_t kernels = (size_t)(j->loops->all * in * out);
    j->room = (size_t)(j->widest + j->loops->all * j->each * j->wide * (in + out) + 15) / 16 * 16;
    j->threads = tn_num_threads();
    size_t nbytes = (kernels + j->room * (size_t)j->threads) * sizeof(float);
    j->kernels = tni_block_alloc(nbytes);
    TN_CHECK(j->kernels, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    j->rooms = j->kernels + kernels;
    tn_status status = tni_pool_for(in * out, 1024, transform_kernels, j);
    if (status == TN_OK)
        status = tni_pool_for((j->rows + j->each - 1) / j->each, 1, run_pieces, j);
    tni_block_free(j->kernels, nbytes);
    return status;
}

tn_status tni_winograd_run(const tni_conv *c, tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                           tn_tensor *out, bool *done)
{
    winograd_job j = {.loops = &tni_cpu_kernels()->winograd[c->stride[1] - 1],
                      .c = c,
                      .high = up(c->out[1]),
                      .wide = up(c->out[2])};
    for (int i = 0; i < 2; i++)
        j.low[i] = c->transposed ? c->padding[1 + i] - 2 : -c->padding[1 + i];
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w_turned = NULL;
    TN_AUTO(tn_tensor) w_taps = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(tni_conv_ready(c, input, TN_DTYPE_F32, &x));
    TN_TRY(tni_conv_weight(c, false, weight, &w_turned)); /* [1, out, in, 1, 3, 3] */
    const int64_t *n = w_turned->sizes, *s = w_turned->strides;
    j.panel = n[1] % PANEL == 0 ? PANEL : n[1];
    TN_TRY(tni_tensor_alias(w_turned, 5, (int64_t[]){n[4], n[5], n[1] / j.panel, n[2], j.panel},
                            (int64_t[]){s[4], s[5], s[1] * j.panel, s[2], s[1]}, w_turned->offset,
                            &w_taps));
    TN_TRY(tni_ready(w_taps, TN_DTYPE_F32, &w));
    TN_TRY(tni_ready(bias, TN_DTYPE_F32, &b));
    TN_TRY(tni_conv_work(c, out, TN_DTYPE_F32, &to, &work));
    j.input = x->data;
    j.weight = w->data;
    j.bias = b ? b->data : NULL;
    j.out = work->data;
    TN_TRY(run_all(&j));
    *done = !atomic_load_explicit(&j.odd, memory_order_relaxed);
    return *done ? tni_work_back(to, work) : TN_OK;
}
