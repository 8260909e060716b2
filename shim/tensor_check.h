/* The guard on one tensor, inline because it is most of what a call's guards cost. Cheapest and most telling comparisons
 * come first: type, dispatch key set, requires_grad, dtype, sizes and strides. */
#ifndef FUSEE_TENSOR_CHECK_H
#define FUSEE_TENSOR_CHECK_H

#include "shim.h"

bool tensor_check_by_calls(const TensorCheck *check, const char *implementation, TensorHandle handle);
bool tensor_check_portable(const TensorCheck *check, PyObject *value);
bool tensor_shape_holds(const TensorCheck *check, TensorHandle handle);
bool tensor_device_holds(const TensorCheck *check, TensorHandle handle);

static inline bool sizes_hold(const int64_t *expected, const int64_t *found, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (expected[i] != found[i] && expected[i] != ANY_SIZE)
            return false;
    return true;
}

static inline bool shape_holds_inline(const TensorCheck *check, const char *implementation, TensorHandle handle) {
    const TensorLayout *layout = &torch.tensor_layout;
    if ((uint64_t)check->dimensions > INLINE_DIMENSIONS)
        return tensor_shape_holds(check, handle);
    return *(const int64_t *)(implementation + layout->dimensions) == check->dimensions &&
           sizes_hold(check->sizes, (const int64_t *)(implementation + layout->sizes), check->dimensions) &&
           sizes_hold(check->strides, (const int64_t *)(implementation + layout->strides), check->dimensions);
}

/* With the layout known the whole check is loads and compares. */
static inline bool tensor_check_inline(const TensorCheck *check, const char *implementation, TensorHandle handle) {
    const TensorLayout *layout = &torch.tensor_layout;
    bool may_require = *(const uint64_t *)(implementation + layout->autograd) != 0;
    bool requires_grad = may_require && torch.symbol.requires_grad(implementation);
    return requires_grad == check->requires_grad &&
           *(const uint16_t *)(implementation + layout->dtype) == check->dtype &&
           (!check->asks_device || tensor_device_holds(check, handle)) &&
           shape_holds_inline(check, implementation, handle);
}

/* Never leaves an exception. */
static inline bool tensor_check_holds(const TensorCheck *check, PyObject *value) {
    if (Py_TYPE(value) != check->type)
        return false;
    if (!torch.direct)
        return tensor_check_portable(check, value);
    TensorHandle handle = handle_of(value);
    const char *implementation = *(char **)handle;
    if (check->has_key_set && *(const uint64_t *)(implementation + torch.key_set_offset) != check->key_set)
        return false;
    return torch.tensor_layout.known ? tensor_check_inline(check, implementation, handle)
                                     : tensor_check_by_calls(check, implementation, handle);
}

#endif
