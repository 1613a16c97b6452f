#pragma once
// All of Tessera: the language (namespace tessera::tl), devices, memory, launch, measurement.
#include <tessera/error.h>
#include <tessera/runtime/autotune.h>
#include <tessera/runtime/bench.h>
#include <tessera/runtime/buffer.h>
#include <tessera/runtime/cache.h>
#include <tessera/runtime/cli.h>
#include <tessera/runtime/device.h>
#include <tessera/runtime/dlpack.h>
#include <tessera/runtime/event.h>
#include <tessera/runtime/kernel.h>
#include <tessera/runtime/launch.h>
#include <tessera/runtime/perf_report.h>
#include <tessera/runtime/stream.h>
#include <tessera/tile.h>
#include <tessera/version.h>
