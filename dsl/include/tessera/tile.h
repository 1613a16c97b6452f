#pragma once
// The tile language: everything a kernel's author needs, and nothing of how kernels are compiled or launched.
#include <tessera/dsl/control.h>
#include <tessera/dsl/debug.h>
#include <tessera/dsl/dot.h>
#include <tessera/dsl/dtype.h>
#include <tessera/dsl/math.h>
#include <tessera/dsl/memory.h>
#include <tessera/dsl/ops.h>
#include <tessera/dsl/reduce.h>
#include <tessera/dsl/trace.h>
#include <tessera/dsl/val.h>
#include <tessera/error.h>
