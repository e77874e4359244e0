"""What judging would take, for the terminal and as JSON."""

from typing import Any

from ragaudit.judge.plan import BYTES_PER_TOKEN, Load, Plan
from ragaudit.model.counting import counted
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import WIDTH, heading, wrap


def plan_text(plan: Plan, width: int = WIDTH) -> str:
    """A few lines: calls, tokens and price, as expected and at most."""
    first = f"{counted(plan.samples, 'sample')} for {plan.model} ({plan.mode.replace('_', ' ')} mode)"
    lines = wrap(for_terminal(first), width)
    if plan.without_call:
        lines.append(f"{counted(plan.without_call, 'sample')} decided without a call: nothing there to judge")
    rows = (
        ("as expected", plan.expected, plan.usd, "the context supports every claim"),
        ("at most", plan.most, plan.most_usd, "it supports none: each claim is looked up elsewhere"),
    )
    lines += ["", heading("Before anything is sent", width)]
    lines.append(f"  {'':<12}{'calls':>9}{'on tape':>9}{'to send':>9}{'tokens in':>12}{'tokens out':>12}{'price':>12}")
    for name, load, usd, _ in rows:
        lines.append(
            f"  {name:<12}{load.calls:>9,}{load.on_tape:>9,}{load.calls - load.on_tape:>9,}{load.input_tokens:>12,}"
            f"{load.output_tokens:>12,}{price(usd):>12}"
        )
    lines.append("")
    for name, _, _, when in rows:
        lines.append(f"  {name}: {when}.")
    if plan.price is None:
        lines += wrap(f"price not known for {for_terminal(plan.model)}", width, first="  ", rest="  ")
    lines += wrap(
        f"Tokens are estimated: {BYTES_PER_TOKEN} bytes of UTF-8 each, replies of usual length. Repaired replies and "
        "second questions come on top.",
        width,
        first="  ",
        rest="  ",
    )
    return "\n".join(line.rstrip() for line in lines) + "\n"


def plan_document(plan: Plan) -> dict[str, Any]:
    """`judge plan --json`."""
    return {
        "schema": "ragaudit.judge_plan/1",
        "model": plan.model,
        "mode": plan.mode,
        "samples": plan.samples,
        "without_call": plan.without_call,
        "expected": _load(plan.expected, plan.usd),
        "most": _load(plan.most, plan.most_usd),
        "price": None
        if plan.price is None
        else {"usd_per_input_token": plan.price.input, "usd_per_output_token": plan.price.output},
        "price_reason": None if plan.price is not None else f"price not known for {plan.model}",
        "tokens": f"estimated: {BYTES_PER_TOKEN} bytes of UTF-8 a token",
    }


def _load(load: Load, usd: float | None) -> dict[str, Any]:
    return {
        "calls": load.calls,
        "on_tape": load.on_tape,
        "to_send": load.calls - load.on_tape,
        "input_tokens": load.input_tokens,
        "output_tokens": load.output_tokens,
        "usd": usd,
    }


def price(usd: float | None) -> str:
    """A price for people; under a cent it says so."""
    return "not known" if usd is None else "$0" if usd == 0 else "<$0.01" if usd < 0.01 else f"${usd:,.2f}"
