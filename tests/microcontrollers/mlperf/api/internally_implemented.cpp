// Commands of the host end with %: name, profile, db load BYTES, db HEX, infer COUNT WARMUP.
#include "api/internally_implemented.h"

#include <stdlib.h>
#include <string.h>

#include "api/submitter_implemented.h"

static char line[81];
static uint8_t data[MAX_DB_INPUT_SIZE];
static size_t length, loaded, wanted;

void ee_benchmark_initialize(void) {
    th_serialport_initialize();
    th_timestamp_initialize();
    th_final_initialize();
    th_printf("m-init-done\r\nm-ready\r\n");
}

void ee_serial_callback(char c) {
    line[length] = c == '%' ? 0 : c;
    length += length < 80;
    if (c == '%') {
        length = 0;
        th_command_ready(line);
    }
}

static void db(const char* word) {
    if (strcmp(word, "load") == 0) {
        wanted = (size_t)atoi(strtok(NULL, " "));
        loaded = 0;
        th_printf("m-[Expecting %d bytes]\r\n", (int)wanted);
        return;
    }
    for (; *word && loaded < wanted; word += 2) {
        const char pair[] = {word[0], word[1], 0};
        data[loaded++] = (uint8_t)strtol(pair, NULL, 16);
    }
    if (loaded == wanted)
        th_printf("m-load-done\r\n");
}

static void infer(int count, int warmup) {
    th_load_tensor();
    while (warmup-- > 0)
        th_infer();
    th_timestamp();
    while (count-- > 0)
        th_infer();
    th_timestamp();
    th_results();
}

void ee_serial_command_parser_callback(char* command) {
    const char* const word = strtok(command, " ");
    if (strcmp(word, "name") == 0)
        th_printf("m-name-%s-[%s]\r\n", "dut", "unspecified");
    else if (strcmp(word, "profile") == 0)
        th_printf("m-profile-[%s]\r\nm-model-[%s]\r\n", "stand-in", TH_MODEL_VERSION);
    else if (strcmp(word, "db") == 0)
        db(strtok(NULL, " "));
    else if (strcmp(word, "infer") == 0) {
        const int count = atoi(strtok(NULL, " "));
        infer(count, atoi(strtok(NULL, " ")));
    } else
        th_printf("e-[Unknown command: %s]\r\n", word);
    th_printf("m-ready\r\n");
}

size_t ee_get_buffer(uint8_t* buffer, size_t most) {
    const size_t count = loaded < most ? loaded : most;
    memcpy(buffer, data, count);
    return count;
}
