#!/usr/bin/env python3
"""Tests of contest.py without a GPU: what it reads and how it decides on small examples, and its launches on a fake driver.

    contest_test.py [--gpu-bench=FILE --fake-cuda=FILE]     the programs; without them only what needs none is tested
"""
import argparse, ctypes, json, os, random, struct, subprocess, sys, tempfile, unittest

import contest

PROGRAMS = argparse.Namespace(gpu_bench=None, fake_cuda=None)


class Reading(unittest.TestCase):
    def test_names(self):
        self.assertEqual(contest.sizes_of("matmul f16 16x4096x781 B^T"), ("f16", [16, 4096, 781]))
        self.assertEqual(contest.sizes_of("vector_add f32 n=98432"), ("f32", [98432]))
        self.assertEqual(contest.sizes_of("layer_norm fwd f16 4096x1024"), ("f16", [4096, 1024]))

    def test_choice(self):
        entries = [{"case": name, "settings": {"warps": w}} for name in ("softmax float32 8x4", "matmul f16 8x8x8", "matmul i8 8x8x8 B^T") for w in (4, 8)]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "index.json"), "w") as file:
                json.dump({"kernels": entries}, file)
            self.assertEqual([len(v) for v in contest.load_index(folder).values()], [2, 2, 2])
            self.assertEqual(list(contest.load_index(folder, ["matmul"], "i8")), ["matmul i8 8x8x8 B^T"])


class Packing(unittest.TestCase):
    def test_values(self):
        pointers, values = contest.pack([{"buffer": "x"}, {"i32": -3}, {"f32": 1.5}], {"x": 0x123456789ABC}.get)
        raw = [ctypes.string_at(p, n) for p, n in zip(pointers, (8, 4, 4))]
        self.assertEqual(raw, [struct.pack("<Q", 0x123456789ABC), struct.pack("<i", -3), struct.pack("<f", 1.5)])
        self.assertEqual(len(values), 3)


class Deciding(unittest.TestCase):
    def test_qualify(self):
        def refused():
            raise RuntimeError("too many\n registers")

        runs = {"slow": lambda: 9, "fast": lambda: 3, "wrong": lambda: 1, "refused": refused}
        best, failed = contest.qualify(runs, lambda run: "off" if run() == 1 else "", lambda run: run(), 1)
        self.assertEqual(best, [(3, "fast")])
        self.assertEqual(failed, {"wrong": "WRONG: off", "refused": "too many registers"})

    def test_turns(self):
        order = []
        times = contest.take_turns({"a": "a", "b": "b", "c": "c"}, 5, lambda runs: [order.append(run) or len(order) for run in runs], at_once=2)
        rounds = ["".join(order[i : i + 3]) for i in range(0, 15, 3)]
        self.assertEqual(["".join(sorted(r)) for r in rounds], ["abc"] * 5)
        self.assertGreater(len(set(rounds)), 1)
        for r, text in enumerate(rounds):
            self.assertEqual([times[name][r] for name in text], [3 * r + 1, 3 * r + 2, 3 * r + 3])

    def test_limit(self):
        """Whoever comes late still has the first rounds."""
        times = contest.take_turns({"a": 1, "b": 2}, 5, lambda runs: runs, lambda: True, at_once=2)
        self.assertEqual(times, {"a": [1, 1], "b": [2, 2]})

    def test_row(self):
        times = {("tessera", "p"): [10, 11, 12], ("tessera", "q"): [9, 10, 30], ("triton", "p"): [22, 20, 18], ("torch", ""): [5, 5, 5]}
        row = contest.row_of("softmax float32 8x4", times, {("tessera", "q"): "q", ("triton", "p"): "p"})
        self.assertEqual((row["tessera"]["mean_us"], row["tessera"]["settings"], row["tessera"]["high_us"]), (10, "q", 30))
        self.assertEqual((row["triton"]["ratio"], row["torch"]["ratio"]), (2, 0.5))
        self.assertIsNone(row["triton"]["ratio_error"])
        self.assertIn("triton    20.00 (18.00 22.00) x2.000", contest.row_text(row))
        alone = contest.row_of("c", {("torch", ""): [5]}, {})
        self.assertNotIn("ratio", alone["torch"])
        self.assertIn("tessera", contest.row_text(alone))

    def test_two_times(self):
        """Kernels that toss between two times: the ratio follows how often each is taken, and its error says how sure that is."""
        toss = lambda seed, share: [4.0 if random.Random(seed + i).random() < share else 5.0 for i in range(2000)]
        fair = contest.row_of("c", {("tessera", ""): toss(0, 0.5), ("triton", ""): toss(5000, 0.5)}, {})["triton"]
        self.assertLess(abs(fair["ratio"] - 1), fair["ratio_error"])
        self.assertLess(fair["ratio_error"], 0.03)
        less = contest.row_of("c", {("tessera", ""): toss(0, 0.6), ("triton", ""): toss(5000, 0.4)}, {})["triton"]
        self.assertGreater(less["ratio"] - less["ratio_error"], 1.03)
        self.assertIn(f"x{less['ratio']:.3f}+-{less['ratio_error']:.3f}", contest.row_text({"case": "c", "triton": less}))

    def test_watch(self):
        """The cache is overwritten before each run, outside of its events, however many runs there are."""
        log = []

        class Event:
            def record(self):
                log.append("event")
                self.at = len(log)

            def elapsed_time(self, end):
                return (end.at - self.at) * 1e-3

        cache = argparse.Namespace(zero_=lambda: log.append("flush"))
        cuda = argparse.Namespace(Event=lambda enable_timing: Event(), synchronize=lambda: None)
        watch = contest.Stopwatch(argparse.Namespace(cuda=cuda, uint8=0, empty=lambda *_, **__: cache))
        self.assertAlmostEqual(watch.flush_us, 1.01)
        log.clear()
        short, long = lambda: log.append("run"), lambda: log.extend(["run"] * 3)
        times = watch.times([short, long] * watch.AT_ONCE)
        self.assertEqual([round(t) for t in times], [2, 4] * watch.AT_ONCE)
        self.assertEqual(log[:4] + log[4:10], ["flush", "event", "run", "event", "flush", "event", "run", "run", "run", "event"])
        self.assertEqual(log.count("flush"), 2 * watch.AT_ONCE)
        self.assertEqual(round(watch.quick(short)), 2)

    def test_failures(self):
        lines = contest.failures_text({"triton a": "R", "triton b": "R", "triton c": "R", "tessera a": "WRONG: x"})
        self.assertEqual(lines, ["# triton: 3 configurations: R", "# tessera: a: WRONG: x"])


class Programs(unittest.TestCase):
    """What gpu_bench writes, loaded and launched through the driver's interface."""

    def setUp(self):
        if not PROGRAMS.gpu_bench:
            self.skipTest("no programs given")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def export(self, *options):
        where = os.path.join(self.folder.name, "kernels")
        log = os.path.join(self.folder.name, "log")
        env = dict(os.environ, TESSERA_LIBCUDA=PROGRAMS.fake_cuda, TESSERA_PTXAS="", TESSERA_CACHE_DIR=os.path.join(self.folder.name, "cache"))
        done = subprocess.run([PROGRAMS.gpu_bench, "--target=cuda", f"--export={where}", *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return where

    def test_launches(self):
        """Every kind of kernel, assembled and loaded by the fake driver, which refuses launches with wrong shapes or shared memory."""
        where = self.export("--match=4096x1024")  # softmax and layer norm
        cases = contest.load_index(where)
        self.assertEqual(sorted(map(contest.part_of, cases)), ["layer_norm", "softmax"])
        log = os.path.join(self.folder.name, "log")
        code = (f"import ctypes, contest, json\ncu = ctypes.CDLL({PROGRAMS.fake_cuda!r})\n"
                "assert cu.cuInit(0) == 0\ncontext = ctypes.c_void_p()\nassert cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0\n"
                "assert cu.cuCtxSetCurrent(context) == 0\nbuffers = {}\n"
                "def address(name):\n"
                "    p = buffers.setdefault(name, ctypes.c_uint64())\n"
                "    assert p.value or cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 20)) == 0\n"
                "    return p.value\n"
                f"driver = contest.Driver({PROGRAMS.fake_cuda!r})\n"
                f"for entries in contest.load_index({where!r}).values():\n"
                f"    for e in entries: driver.launcher({where!r}, e, address, 0)()\n"
                "try: driver.function(b'no machine code', 'k', 0)\n"
                "except RuntimeError as error: print(error)\n"
                "print(json.dumps({name: p.value for name, p in buffers.items()}))\n")
        done = subprocess.run([sys.executable, "-B", "-c", code], env=dict(os.environ, FAKE_GPU_LOG=log), cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cuModuleLoadData: ", done.stdout)
        with open(log) as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line for line in lines if "refused" in line], [])
        entries = [entry for case in cases.values() for entry in case]
        self.assertEqual([(l["kernel"], l["grid"][0], l["threads"]) for l in lines], [(e["symbol"], e["grid"], e["threads"]) for e in entries])
        self.assertEqual({e["grid"] for e in entries if e["symbol"] == "softmax"}, {264, 528, 1056, 4096})

    def test_machine_code(self):
        """Without a device: all configurations of a product, an index without what is always 1, and errors as such."""
        where = self.export("--compile-only", "--match=matmul f16 4096x4096x781")
        (name, entries), = contest.load_index(where).items()
        self.assertEqual(len(entries), 12)
        failed = [entry for entry in entries if "error" in entry]
        self.assertEqual([contest.settings_text(entry) for entry in failed], ["bm=128 bn=256 bk=128 stages=3 warps=8"])
        self.assertIn("bytes of shared memory", failed[0]["error"])
        for entry in [entry for entry in entries if "error" not in entry]:
            s = entry["settings"]
            self.assertEqual(entry["grid"], 4096 * 4096 // int(s["bm"] * s["bn"]))
            self.assertEqual([next(iter(a)) for a in entry["arguments"]], ["buffer"] * 3 + ["i32"] * 6)
            self.assertEqual([a["i32"] for a in entry["arguments"][3:]], [4096, 4096, 781, 781, 4096, 4096])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu-bench")
    parser.add_argument("--fake-cuda")
    PROGRAMS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
