"""From --judge and --tape to who is asked, and the progress of asking."""

from ragaudit.audit.judging import Judge
from ragaudit.cli.streams import Streams
from ragaudit.cli.tape_paths import folder_of
from ragaudit.config import JudgeSettings
from ragaudit.errors import ConfigError
from ragaudit.readers.bundle import Bundle


def judge_of(streams: Streams, bundle: Bundle, judge: str, tape: str | None) -> Judge | None:
    """Who judges this run.

    Args:
        streams: For what is said about it.
        bundle: The open bundle; its settings name model, cassette and cache.
        judge: "off", "auto" (the configured model, if there is one), or a model, which wins over the configured one.
        tape: none, once, new or all; None = new.

    Raises:
        ConfigError: `--tape` without any model, or a setting is wrong.
    """
    settings = bundle.settings.judge or JudgeSettings()
    if judge == "off":
        return None
    if judge != "auto":
        settings = settings.model_copy(update={"model": judge})
    if not settings.model:
        if tape is not None:
            raise ConfigError("--tape: no judge model is set. Write [judge] model in ragaudit.toml, or pass --judge.")
        return None
    from ragaudit.judge.settings import how_to_judge, limits, litellm_client, open_tape, prompts_of

    mode = tape or "new"
    folder = folder_of(bundle.paths)
    return Judge(
        how=how_to_judge(settings),
        prompts=prompts_of(settings, folder),
        tape=open_tape(settings, mode, folder),
        limits=limits(settings),
        client=None if mode == "none" else litellm_client(settings),
        cuts=settings.cuts.model_dump(),
    )
