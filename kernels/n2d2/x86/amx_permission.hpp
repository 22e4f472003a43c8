// The permission of a process to use the registers of AMX. It is compiled without flags too, where a program chooses its instruction set.
//
// Their state is 8 KB, which Linux keeps for a thread from its first use on, and gives a process that asks for it once (arch_prctl,
// ARCH_REQ_XCOMP_PERM, from Linux 5.16 on). It may refuse: where the kernel does not know them, or an alternate stack for signals has
// no room for them. Without the permission an instruction of AMX ends the process.
#pragma once

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#endif

namespace n2d2 {
namespace amx {

#if defined(N2D2_EMULATED_AMX)
inline bool granted() { return N2D2_EMULATED_AMX != 0; }
#elif defined(__x86_64__) && defined(__linux__)
// 0: not asked yet, 1: the system gives them, 2: it does not.
template <class = void>
struct Permission {
    static int known;

    static int ask() {
        long answer = 158;  // arch_prctl; no function of the C library
        const long request = 0x1023, registers = 18;
        __asm__ volatile("syscall" : "+a"(answer) : "D"(request), "S"(registers) : "rcx", "r11", "memory");
        const int found = answer == 0 ? 1 : 2;
        __atomic_store_n(&known, found, __ATOMIC_RELAXED);
        return found;
    }
};
template <class Unused>
int Permission<Unused>::known = 0;

inline bool granted() {
    const int known = __atomic_load_n(&Permission<>::known, __ATOMIC_RELAXED);
    return (known != 0 ? known : Permission<>::ask()) == 1;
}

// True if the processor multiplies bytes in them, and the process may.
inline bool available() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & 3) == 3 && granted();
}
#else
inline bool available() { return false; }
#endif

}  // namespace amx
}  // namespace n2d2
