/* A library of another ABI, which a binding must refuse to use. */
#include <stdint.h>
__attribute__((visibility("default"))) int32_t td_abi_version(void);
int32_t td_abi_version(void) { return 999; }
