"""`python -m benchmarks [NAME ...]`: run the benchmarks and print their tables; all of them without a name."""

import argparse
import importlib
import time

NAMES = ("metrics", "ingest", "whole_audit", "prediction")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; default: all")
    names = parser.parse_args().names or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in names:
        start = time.perf_counter()
        importlib.import_module(f"benchmarks.{name}").main([])
        print(f"({name}: {time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
