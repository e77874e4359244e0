"""The drill as people read it: what was injected against what was diagnosed, and every fault that was misnamed."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from ragaudit.drill.outcome import DrillReport, FaultResult
from ragaudit.drill.registry import Fault
from ragaudit.model.diagnosis import STAGES, Outcome, Stage
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import WIDTH, heading, pad, wrap

_COLUMNS = (*(stage.value for stage in STAGES), Stage.UNDETERMINED.value, Stage.NONE.value)
_LABEL, _COLUMN = 10, 6
_NAME, _STAGE = 24, 11
_GATES = {"recall@k.max_drop": "recall", "leaks": "leaks", "outcomes.fail": "fail"}


def drill_text(report: DrillReport) -> str:
    """The whole drill in 80 columns of ASCII."""
    injected = sum(result.applied for result in report.results)
    wrong = sum(len(result.misnamed) for result in report.results)
    said = (
        f"{report.healthy:,} of {report.traces:,} queries were broken on purpose, {injected:,} times in all (seed "
        f"{report.seed}). " + _in_words(wrong)
    )
    blocks = [[heading(f"Drill: {for_terminal(report.name)}"), *wrap(said)]]
    if report.table:
        blocks.append(_confusion("Injected (rows), diagnosed (columns): everything logged", report.table))
    if report.blind:
        blocks.append(_confusion("The same with the deciding observation not logged", report.blind))
    struck = [result for result in report.results if result.applied]
    blocks.append(_faults([result for result in struck if not result.hides]))
    blocks.append(_blind([result for result in struck if result.hides]))
    blocks.append(_to_log([result for result in struck if not result.hides and result.open]))
    blocks.append(_misnamed(report.misnamed))
    blocks.append(_idle(dict.fromkeys(result.fault for result in report.results if not result.applied)))
    return "\n".join("\n".join(line.rstrip() for line in block) + "\n" for block in blocks if block)


def _in_words(wrong: int) -> str:
    if not wrong:
        return "No diagnosis was wrong."
    return "1 diagnosis was wrong: it excludes the truth." if wrong == 1 else f"{wrong:,} diagnoses exclude the truth."


def _confusion(title: str, table: Mapping[str, Mapping[str, int]]) -> list[str]:
    names = [name if name != Stage.NONE.value else "other" for name in _COLUMNS]
    lines = [heading(title), " " * _LABEL + "".join(name[: _COLUMN - 1].rjust(_COLUMN) for name in names)]
    for stage in STAGES:
        row = table.get(stage.value)
        if row:
            cells = (f"{row[name]:,}" if row.get(name) else "." for name in _COLUMNS)
            lines.append(pad(stage.value, _LABEL) + "".join(cell.rjust(_COLUMN) for cell in cells))
    return lines


def _numbers(result: FaultResult) -> str:
    counts = (result.applied, result.named, result.open, len(result.misnamed))
    return "".join(f"{count:,}".rjust(7) for count in counts)


_HEADS = "".join(head.rjust(7) for head in ("broken", "named", "open", "wrong"))


def _faults(results: list[FaultResult]) -> list[str]:
    if not results:
        return []
    lines = [heading("Fault by fault"), pad("fault", _NAME) + pad("stage", _STAGE) + _HEADS + "  gates that fire"]
    for result in results:
        gates = " ".join(_GATES.get(gate, gate) for gate in result.gates) or "none"
        lines.append(pad(result.fault, _NAME) + pad(result.stage.value, _STAGE) + _numbers(result) + "  " + gates)
    return lines


def _blind(results: list[FaultResult]) -> list[str]:
    if not results:
        return []
    lines = [heading("With an observation taken away"), pad("fault", _NAME + _STAGE) + _HEADS]
    for result in results:
        lines.append(pad(result.fault, _NAME) + pad(result.stage.value, _STAGE) + _numbers(result))
        lines += wrap(f"not logged: {result.hides}", first="  ", rest="    ")
    return lines


def _to_log(results: list[FaultResult]) -> list[str]:
    """Faults that this bundle's own log leaves open."""
    if not results:
        return []
    lines = [heading("Left open by what this bundle logs")]
    for result in results:
        asked = "; ".join(result.log) or "nothing that ragaudit knows of"
        lines += wrap(f"{result.fault}: {result.open:,} of {result.applied:,} open. To log: {asked}", rest="  ")
    return lines


def _misnamed(results: Iterable[FaultResult]) -> list[str]:
    lines = [heading("Wrong")]
    for result in results:
        blind = f", {result.hides} not logged" if result.hides else ""
        lines += wrap(f"{result.fault} ({result.stage.value}{blind}): {len(result.misnamed):,} of {result.applied:,}")
        first = result.misnamed[0]
        verdict = first.stage.value if first.outcome is Outcome.FAIL else first.outcome.value
        if first.could_be:
            verdict += f" (could be {', '.join(first.could_be)})"
        told = f"{for_terminal(first.query_id)}: {verdict}. {for_terminal(first.evidence)}"
        lines += wrap(told, first="  ", rest="    ")
    return lines if len(lines) > 1 else []


def _idle(names: Iterable[str]) -> list[str]:
    idle = ", ".join(names)
    return [heading("No query of this run can have"), *wrap(idle)] if idle else []


def list_text(faults: Iterable[Fault]) -> str:
    """The faults by stage, with what the blind variant leaves out."""
    blocks = []
    for stage, found in groupby(faults, key=lambda fault: fault.stage):
        lines = [heading(stage.label)]
        for fault in found:
            lines += [f"  {fault.name}", *wrap(fault.summary, WIDTH, first="      ", rest="      ")]
            if fault.hides:
                lines += wrap(f"also with this not logged: {fault.hides}", first="      ", rest="        ")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)
