/* A plug-in of QEMU's user mode that counts instructions: qemu-aarch64 -plugin ./count.so,to=FILE PROGRAM writes their number
   to FILE. The interface is that of qemu-plugin.h, version 1; the few declarations that are needed are given here. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t plugin_id;
struct tb;

int qemu_plugin_version = 1;
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*callback)(plugin_id, struct tb*));
size_t qemu_plugin_tb_n_insns(const struct tb* tb);
void qemu_plugin_register_vcpu_tb_exec_inline(struct tb* tb, int operation, void* value, uint64_t amount);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*callback)(plugin_id, void*), void* user);

static uint64_t count;
static char path[4096];

static void translated(plugin_id id, struct tb* tb) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0 /* add */, &count, qemu_plugin_tb_n_insns(tb));
}

static void finished(plugin_id id, void* user) {
    FILE* const file = fopen(path, "w");
    (void)id;
    (void)user;
    if (file) {
        fprintf(file, "%llu\n", (unsigned long long)count);
        fclose(file);
    }
}

int qemu_plugin_install(plugin_id id, const void* info, int argc, char** argv) {
    (void)info;
    if (argc != 1 || strncmp(argv[0], "to=", 3) != 0)
        return 1;
    snprintf(path, sizeof path, "%s", argv[0] + 3);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
