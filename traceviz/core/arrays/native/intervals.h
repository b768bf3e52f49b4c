/* Functions of Python over sorted times. */

#ifndef TRACEVIZ_INTERVALS_H
#define TRACEVIZ_INTERVALS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

extern PyMethodDef interval_functions[];

#endif
