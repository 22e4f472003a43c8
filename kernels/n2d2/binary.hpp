// Constants that the assembler reads from files, for compilers that understand GCC's assembly.
#pragma once

#if !defined(__GNUC__) || !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "no constants from files here: export with WeightsFormat=string"
#endif

#ifndef N2D2_PARAMETERS
// The folder of the files, seen from where the compiler runs.
#define N2D2_PARAMETERS "dnn/parameters"
#endif

#define N2D2_QUOTED_(text) #text
#define N2D2_QUOTED(text) N2D2_QUOTED_(text)

#if defined(__APPLE__)
#define N2D2_READ_ONLY(symbol) ".section __TEXT,__const\n"
#define N2D2_OBJECT(symbol) ""
#elif defined(_WIN32)
#define N2D2_READ_ONLY(symbol) ".section .rdata,\"dr\"\n"
#define N2D2_OBJECT(symbol) ""
#elif defined(__wasm__)
#define N2D2_READ_ONLY(symbol) ".section .rodata." symbol ",\"\",@\n"
#define N2D2_OBJECT(symbol) ".type " symbol ", @object\n.size " symbol ", . - " symbol "\n"
#else
#define N2D2_READ_ONLY(symbol) ".section .rodata,\"a\"\n"
#define N2D2_OBJECT(symbol) ".type " symbol ", %object\n.size " symbol ", . - " symbol "\n"
#endif

// Defines the constant array `symbol`, a mangled name, as the bytes of a file of a folder.
#define N2D2_BINARY_AT(symbol, alignment, folder, file)                                                            \
    __asm__(N2D2_READ_ONLY(symbol) ".globl " N2D2_QUOTED(__USER_LABEL_PREFIX__) symbol                             \
            "\n.balign " #alignment "\n" N2D2_QUOTED(__USER_LABEL_PREFIX__) symbol ":\n.incbin \"" folder "/" file \
                                                                                   "\"\n" N2D2_OBJECT(symbol) ".text")
#define N2D2_BINARY(symbol, alignment, file) N2D2_BINARY_AT(symbol, alignment, N2D2_PARAMETERS, file)
