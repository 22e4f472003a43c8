/* Every stage of an export on the samples of cases.bin: stored input, stored output, detections in the frame, to results.bin.
 *
 * -DNET=name -DHEADER="name.h", one of -DIMAGE, -DDETECTOR, -DSOUND; -DON_BOARD for semihosting.
 */
#include <stdint.h>
#include HEADER

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(NET, name)

#if defined(ON_BOARD)
#include "semihosting.h"
static long source, result;
static int get(void* to, size_t bytes) { return bytes == 0 || semihosting_transfer(SEMIHOSTING_READ, source, to, bytes); }
static void put(const void* from, size_t bytes) { semihosting_transfer(SEMIHOSTING_WRITE, result, from, bytes); }
static int open_files(void) {
    source = semihosting_open("cases.bin", 1);
    result = semihosting_open("results.bin", 5);
    return source >= 0 && result >= 0;
}
#else
#include <stdio.h>
static FILE *source, *result;
static int get(void* to, size_t bytes) { return fread(to, 1, bytes, source) == bytes; }
static void put(const void* from, size_t bytes) { fwrite(from, 1, bytes, result); }
static int open_files(void) {
    source = fopen("cases.bin", "rb");
    result = fopen("results.bin", "wb");
    return source && result;
}
#endif

static uint64_t arena[OF(_ARENA_BYTES) / 8 + OF(_ARENA_ALIGNMENT)];
static OF(_input_t) input[OF(_INPUT_ELEMENTS)];
static OF(_output_t) output[OF(_OUTPUT_ELEMENTS)];
static unsigned char raw[1 << 17];

int main(void) {
    void* const memory = (void*)(((uintptr_t)arena + OF(_ARENA_ALIGNMENT) - 1) / OF(_ARENA_ALIGNMENT) * OF(_ARENA_ALIGNMENT));
    int32_t count, size[4]; /* width, height, bytes per row, bytes of a frame; or samples of a sound, and those at a time */
    if (!open_files() || !get(&count, sizeof count))
        return 1;
    for (; count > 0; --count) {
#if defined(SOUND)
        static OF(_audio) work;
        int at;
        if (!get(size, sizeof size) || 2 * (size_t)size[0] > sizeof raw || !get(raw, 2 * (size_t)size[0]))
            return 1;
        OF(_audio_begin)(&work, input);
        for (at = 0; at < size[0]; at += size[1])
            OF(_audio_samples)(&work, (const int16_t*)(const void*)raw + at, size[0] - at < size[1] ? size[0] - at : size[1], input);
#else
        static OF(_frame) work;
        if (!get(size, sizeof size) || (size_t)size[3] > sizeof raw || !get(raw, (size_t)size[3]))
            return 1;
        if (OF(_from_frame)(raw, size[0], size[1], size[2], input, &work) != 0)
            return 1;
#endif
        put(input, sizeof input);
        OF(_forward)(input, output, memory);
        put(output, sizeof output);
#if defined(DETECTOR)
        {
            static OF(_detection) found[OF(_DETECTIONS)];
            const int32_t objects = OF(_detect)(output, found, OF(_DETECTIONS));
            OF(_detections_in_frame)(found, objects, size[0], size[1]);
            put(&objects, sizeof objects);
            put(found, (size_t)objects * sizeof found[0]);
        }
#endif
    }
#if !defined(ON_BOARD)
    fclose(result);
#endif
    return 0;
}
