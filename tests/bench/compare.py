#!/usr/bin/env python3
"""Ratio table of benchmark results: Tessera against its peers.

Usage: compare.py TESSERA.json PEER.json [MORE.json …] [--min-ratio R]
A file is what `gpu_bench --bench --json=FILE` writes, or a list of a peer's rows {"case", "provider", "us", "gbps" or
"tflops", …}. Give several rounds of each, measured in turns: of a case the median round is taken, since one round of a
short kernel is uncertain by some per cent. Ratio = peer's time / Tessera's time: above 1 Tessera is faster. With
--min-ratio the exit code says whether every case that Triton has reached R.
"""
import argparse, json, sys


def rows_of(path):
    data = json.load(open(path))
    if isinstance(data, dict):
        return [dict(r, case=r["name"], provider="tessera", us=r["median_ms"] * 1e3) for r in data["results"]]
    return data


def best(rows):
    """Fastest row of each (case, provider)."""
    table = {}
    for row in rows:
        key = row["case"], row["provider"]
        if key not in table or row["us"] < table[key]["us"]:
            table[key] = row
    return table


def median_of_rounds(files):
    """Per (case, provider) the median over files of each file's fastest row."""
    rounds = {}
    for path in files:
        for key, row in best(rows_of(path)).items():
            rounds.setdefault(key, []).append(row)
    return {key: sorted(rows, key=lambda r: r["us"])[len(rows) // 2] for key, rows in rounds.items()}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("files", nargs="+", metavar="FILE.json")
    args.add_argument("--min-ratio", type=float)
    args = args.parse_args()
    rows = median_of_rounds(args.files)
    providers = sorted({provider for _, provider in rows if provider != "tessera"})
    cases = [case for case, provider in rows if provider == "tessera"]

    print(f"{'case':36} {'tessera us':>12} {'rate':>14}" + "".join(f" {p + ' us':>13} {'ratio':>6}" for p in providers))
    below = []
    for case in cases:
        ours = rows[case, "tessera"]
        rate = f"{ours['tflops']:.1f} TFLOP/s" if "tflops" in ours else f"{ours.get('gbps', 0):.0f} GB/s"
        line = f"{case:36} {ours['us']:12.2f} {rate:>14}"
        for provider in providers:
            theirs = rows.get((case, provider))
            ratio = theirs["us"] / ours["us"] if theirs else None
            line += f" {theirs['us']:13.2f} {ratio:6.3f}" if theirs else f" {'-':>13} {'-':>6}"
            if provider == "triton" and ratio and args.min_ratio and ratio < args.min_ratio:
                below.append(case)
        print(line)
    if below:
        sys.exit(f"below {args.min_ratio} x triton: {', '.join(below)}")


main()
