/* td.h alone, as strictly as a C compiler can read it. */
#include <td/td.h>

int td_header_is_c99(td_context *context);
int td_header_is_c99(td_context *context) { return context == 0 ? TD_OK : TD_ERR_HANDLE; }
