/* carbon_mind._native: buffers in, bytes out. All the thinking is in carbon_rank.cpp; this file converts and checks types.
 *
 * Stable ABI of Python 3.11 (Py_LIMITED_API comes from CMake), so that one wheel serves every later version.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "carbon_rank.h"

#include <cstring>
#include <limits>
#include <new>
#include <vector>

namespace {

constexpr long long int32_max = std::numeric_limits<int32_t>::max();

/* Copies a one-dimensional buffer, so that ranking without the GIL never reads memory that another thread can write to
 * or free. `formats` lists the accepted format characters. False with an exception set. */
template <typename T> bool copy_buffer(PyObject *object, const char *name, const char *formats, const char *wanted,
                                       std::vector<T> &copy) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) != 0) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_BufferError)) return false;
        PyErr_Format(PyExc_TypeError, "%s must be a buffer of %s", name, wanted);
        return false;
    }
    const char *format = view.format != nullptr ? view.format : "B";
    bool good = false;
    if (format[0] == '\0' || format[1] != '\0' || std::strchr(formats, format[0]) == nullptr ||
        view.itemsize != static_cast<Py_ssize_t>(sizeof(T))) {
        PyErr_Format(PyExc_TypeError, "%s must be a buffer of %s", name, wanted);
    } else if (view.ndim != 1 || !PyBuffer_IsContiguous(&view, 'C')) {
        PyErr_Format(PyExc_ValueError, "%s must be one-dimensional and contiguous", name);
    } else {
        try {
            copy.resize(static_cast<size_t>(view.len) / sizeof(T));
            if (view.len > 0) std::memcpy(copy.data(), view.buf, static_cast<size_t>(view.len));
            good = true;
        } catch (const std::bad_alloc &) {
            PyErr_NoMemory();
        }
    }
    PyBuffer_Release(&view);
    return good;
}

bool to_int32(PyObject *object, long long least, carbon_rank_status out_of_range, int32_t &value) {
    PyObject *number = PyNumber_Index(object);
    if (number == nullptr) return false;
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0 || wide < least || wide > int32_max) {
        PyErr_SetString(PyExc_ValueError, carbon_rank_message(out_of_range));
        return false;
    }
    value = static_cast<int32_t>(wide);
    return true;
}

bool to_double(PyObject *object, double &value) {
    value = PyFloat_AsDouble(object);
    return value != -1.0 || PyErr_Occurred() == nullptr;
}

PyObject *rank(PyObject *, PyObject *args) {
    PyObject *n_object, *src_object, *dst_object, *weight_object, *pers_object, *damping_object, *tol_object,
        *max_iter_object;
    if (!PyArg_UnpackTuple(args, "rank", 8, 8, &n_object, &src_object, &dst_object, &weight_object, &pers_object,
                           &damping_object, &tol_object, &max_iter_object)) {
        return nullptr;
    }
    int32_t n = 0, max_iter = 0;
    double damping = 0.0, tol = 0.0;
    std::vector<int32_t> src, dst;
    std::vector<double> weight, personalization;
    if (!to_int32(n_object, 0, CARBON_RANK_BAD_N, n) || !to_double(damping_object, damping) ||
        !to_double(tol_object, tol) || !to_int32(max_iter_object, 1, CARBON_RANK_BAD_MAX_ITER, max_iter) ||
        !copy_buffer(src_object, "src", "il", "int32", src) || !copy_buffer(dst_object, "dst", "il", "int32", dst) ||
        !copy_buffer(weight_object, "weight", "d", "float64", weight) ||
        !copy_buffer(pers_object, "personalization", "d", "float64", personalization)) {
        return nullptr;
    }
    if (src.size() != dst.size() || src.size() != weight.size()) {
        PyErr_SetString(PyExc_ValueError, "src, dst and weight must have the same length");
        return nullptr;
    }
    if (!personalization.empty() && personalization.size() != static_cast<size_t>(n)) {
        PyErr_SetString(PyExc_ValueError, "personalization must be empty or have n entries");
        return nullptr;
    }
    std::vector<double> scores;
    try {
        scores.resize(static_cast<size_t>(n));
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    carbon_rank_status status;
    Py_BEGIN_ALLOW_THREADS
    status = carbon_rank(n, src.size(), src.data(), dst.data(), weight.data(),
                         personalization.empty() ? nullptr : personalization.data(), damping, tol, max_iter,
                         scores.data());
    Py_END_ALLOW_THREADS
    if (status == CARBON_RANK_NO_MEMORY) return PyErr_NoMemory();
    if (status != CARBON_RANK_OK) {
        PyErr_SetString(PyExc_ValueError, carbon_rank_message(status));
        return nullptr;
    }
    return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(scores.data()),
                                     static_cast<Py_ssize_t>(scores.size() * sizeof(double)));
}

PyDoc_STRVAR(rank_doc, "rank(n, src, dst, weight, personalization, damping, tol, max_iter, /)\n--\n\n"
                       "Personalised PageRank; n float64 in native byte order. See carbon_mind.repo.pagerank.");

PyMethodDef methods[] = {{"rank", rank, METH_VARARGS, rank_doc}, {nullptr, nullptr, 0, nullptr}};

/* Multi-phase initialisation without an exec slot: the module has no state of its own. */
PyModuleDef_Slot slots[] = {{0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "carbon_mind._native", "The symbol-graph ranker, compiled.", 0, methods,
                          slots,                 nullptr,               nullptr,                              nullptr};

} // namespace

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&definition); }
