// td.h alone, as strictly as a C++ compiler can read it.
#include <td/td.h>

int td_header_is_cpp(td_context *context);
int td_header_is_cpp(td_context *context) { return context == nullptr ? TD_OK : TD_ERR_HANDLE; }
