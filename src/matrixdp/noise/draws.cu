// Exact Gaussian integers, numbered: the draws of noise/indexed_draws.py, bit for bit. Compiled without contraction
// (--fmad=false), so that float64 expressions are rounded as NumPy rounds them.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define PLACE_BITS 49
#define PLACE_MASK ((1ull << PLACE_BITS) - 1)
#define CELLS 16384
#define ENTRY 11  // words for the host: the draw, its attempt, the candidate, the attempt's block
#define FULL_WARP 0xffffffffu

struct Key {
    u32 words[8];
};

__device__ __forceinline__ u32 turn(u32 x, int bits) { return __funnelshift_l(x, x, bits); }

__device__ __forceinline__ void quarter_round(u32 &a, u32 &b, u32 &c, u32 &d) {
    a += b; d = turn(d ^ a, 16);
    c += d; b = turn(b ^ c, 12);
    a += b; d = turn(d ^ a, 8);
    c += d; b = turn(b ^ c, 7);
}

// One block of ChaCha20: eight words of 64 bits.
__device__ __forceinline__ void chacha(const Key &key, u64 counter, u32 nonce, u64 *out) {
    u32 start[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u,
                     key.words[0], key.words[1], key.words[2], key.words[3],
                     key.words[4], key.words[5], key.words[6], key.words[7],
                     (u32)counter, (u32)(counter >> 32), nonce, 0};
    u32 x[16];
#pragma unroll
    for (int i = 0; i < 16; i++) x[i] = start[i];
#pragma unroll
    for (int round = 0; round < 10; round++) {
#pragma unroll
        for (int i = 0; i < 4; i++) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            quarter_round(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = (u64)(x[2 * i] + start[2 * i]) | (u64)(x[2 * i + 1] + start[2 * i + 1]) << 32;
}

// The signed place of a candidate on the finest grid, from the block of its cell.
__device__ __forceinline__ i64 place_of(u64 word, u32 block) {
    i64 sign = -(i64)(word >> PLACE_BITS & 1);
    return (i64)((u64)((i64)block ^ sign) << PLACE_BITS | (word & PLACE_MASK));
}

// Where draws go: what a kernel does with draw number i. Another target has the same two functions.
struct Integers {
    i64 *out;
    __device__ __forceinline__ void put(u64 i, i64 draw) const { out[i] = draw; }
    __device__ __forceinline__ void put_eight(u64 i, const i64 *draws) const {
        longlong2 *target = (longlong2 *)(out + i);
#pragma unroll
        for (int j = 0; j < 4; j++) target[j] = make_longlong2(draws[2 * j], draws[2 * j + 1]);
    }
};

// One thread makes eight candidates. Those whose cell is not certain are written to a list, with one atomic a warp.
template <typename Target>
__global__ void __launch_bounds__(256)
propose(const Key key, const u64 first, const u64 count, const int shift, const u32 certain, const u8 *blocks_of_cells,
        const Target target, u64 *list_index, u64 *list_word, u32 *list_size, const u32 capacity) {
    __shared__ __align__(16) u8 cells[CELLS];
    for (int i = threadIdx.x; i < CELLS / 16; i += blockDim.x)
        ((uint4 *)cells)[i] = ((const uint4 *)blocks_of_cells)[i];
    __syncthreads();
    const u64 groups = (count + 7) / 8, stride = (u64)gridDim.x * blockDim.x;
    const u32 lane = threadIdx.x % 32;
    for (u64 start = (u64)blockIdx.x * blockDim.x + threadIdx.x - lane; start < groups; start += stride) {
        const u64 group = start + lane;
        u64 words[8];
        chacha(key, first / 8 + group, 0, words);
        u32 uncertain = 0;
        i64 values[8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const u32 cell = (u32)(words[j] >> (PLACE_BITS + 1));
            values[j] = place_of(words[j], cells[cell]) >> shift;
            if (cell >= certain && 8 * group + j < count) uncertain |= 1u << j;
        }
        if (8 * group + 8 <= count) {
            target.put_eight(first + 8 * group, values);
        } else {
#pragma unroll
            for (int j = 0; j < 8; j++)
                if (8 * group + j < count) target.put(first + 8 * group + j, values[j]);
        }
        const u32 own = __popc(uncertain);
        u32 sum = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const u32 other = __shfl_up_sync(FULL_WARP, sum, step);
            if (lane >= step) sum += other;
        }
        u32 base = 0;
        if (lane == 31 && sum) base = atomicAdd(list_size, sum);
        base = __shfl_sync(FULL_WARP, base, 31) + sum - own;
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (uncertain >> j & 1) {
                if (base < capacity) {
                    list_index[base] = first + 8 * group + j;
                    list_word[base] = words[j];
                }
                base++;
            }
    }
}

// One thread decides one candidate of the list, and those that follow it. What float64 cannot decide, and what may
// lie in the tail, is left to the host.
template <typename Target>
__global__ void __launch_bounds__(256)
decide(const Key key, const int shift, const u32 certain, const u32 tail, const double error,
       const double tail_bound, const u8 *blocks_of_cells, const double *level, const double *curve,
       const double *centre, const Target target, const u64 *list_index, const u64 *list_word, const u32 *list_size,
       const u32 capacity, u64 *left, u32 *left_size, const u32 left_capacity) {
    const u32 size = min(*list_size, capacity);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
        const u64 index = list_index[i];
        u64 word = list_word[i];
        for (u32 attempt = 1;; attempt++) {
            u64 random[8];
            chacha(key, index, attempt, random);
            const u32 cell = (u32)(word >> (PLACE_BITS + 1));
            const u32 entry = (u32)(word >> PLACE_BITS) - 2 * certain;
            const double uniform = (double)(random[0] >> 11) * 0x1p-53;
            const double h = ((double)(word & PLACE_MASK) - 0x1p48) * 0x1p-54;
            const double z = h * (centre[entry] + h / 2);
            const double falling =
                1 - z * (1 - z * (1.0 / 2) * (1 - z * (1.0 / 3) * (1 - z * (1.0 / 4))));
            const double above = curve[entry] * falling - level[entry] - uniform;
            if (above > error) {
                target.put(index, place_of(word, blocks_of_cells[cell]) >> shift);
                break;
            }
            if (above >= -error || (cell == tail && uniform < tail_bound)) {
                const u32 place = atomicAdd(left_size, 1);
                if (place < left_capacity) {
                    u64 *slot = left + ENTRY * place;
                    slot[0] = index;
                    slot[1] = attempt - 1;
                    slot[2] = word;
#pragma unroll
                    for (int j = 0; j < 8; j++) slot[3 + j] = random[j];
                }
                break;
            }
            word = random[1];
            const u32 next = (u32)(word >> (PLACE_BITS + 1));
            if (next < certain) {
                target.put(index, place_of(word, blocks_of_cells[next]) >> shift);
                break;
            }
        }
    }
}

// Draws that the host settled: pairs of a number and a draw.
template <typename Target>
__global__ void settle(const i64 *pairs, const u32 count, const Target target) {
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) target.put(pairs[2 * i], pairs[2 * i + 1]);
}
