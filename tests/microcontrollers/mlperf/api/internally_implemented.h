// The functions of the API: a stand-in for that of https://github.com/mlcommons/tiny.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define EE_MODEL_VERSION_KWS01 "kws01"
#define EE_MODEL_VERSION_VWW01 "vww01"
#define EE_MODEL_VERSION_AD01 "ad01"
#define EE_MODEL_VERSION_IC01 "ic01"

void ee_benchmark_initialize(void);
void ee_serial_callback(char c);
void ee_serial_command_parser_callback(char* command);
size_t ee_get_buffer(uint8_t* buffer, size_t most);
