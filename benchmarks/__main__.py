"""`python -m benchmarks [NAME ...]`: run the benchmarks and print their tables; all of them without a name.

Two more need a model that answers, and up to hours of it: `python -m benchmarks.judge_quality` (how far a judge agrees
with people) and `python -m benchmarks.judge_injection` (how often a hostile text steers it). Without options they ask
the model of examples/local_model: `python examples/local_model/with_server.py -- python -m benchmarks.judge_quality`.
"""

import argparse
import importlib
import time

NAMES = ("metrics", "ingest", "whole_audit", "prediction", "judge_speed", "report", "import_spans")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
