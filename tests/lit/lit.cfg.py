# FileCheck tests: every tool of the build is found by its name.
import os

import lit.formats
from lit.llvm import llvm_config

config.name = "tessera"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ttir", ".ttgir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.tessera_lit_dir

# A variable a test forgets to define is an error, not a match of anything.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input=fail"
llvm_config.with_environment("PATH", [config.tessera_tools_dir, config.llvm_tools_dir], append_path=True)
for variable in ("CUDA_VISIBLE_DEVICES", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TESSERA_CACHE_DIR"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

tools = ["tessera-opt", "tessera-translate", "tessera-layout"]
llvm_config.add_tool_substitutions(tools, [config.tessera_tools_dir])
config.substitutions.append(("%python", config.python_executable))
for feature, present in (("ptxas", config.ptxas),):
    if present and not present.endswith("-NOTFOUND"):
        config.available_features.add(feature)
        config.substitutions.append(("%" + feature, present))
