"""The two themes: hues of the Okabe-Ito palette, which people with any colour vision tell apart."""

from textual.theme import Theme

DARK = Theme(
    name="ragaudit-dark",
    primary="#56B4E9",
    secondary="#8FA3B0",
    accent="#56B4E9",
    warning="#E69F00",
    error="#D55E00",
    success="#56B4E9",
    foreground="#E4E6E8",
    background="#101418",
    surface="#101418",
    panel="#1C232A",
    dark=True,
    variables={
        "lost": "#FF8F4A",
        "kept": "#7CC7F2",
        "unscored": "#F0B429",
        "dimmed": "#9AA7B1",
        "cursor": "#244A61",
        "footer-key-foreground": "#7CC7F2",
    },
)
LIGHT = Theme(
    name="ragaudit-light",
    primary="#0072B2",
    secondary="#4A5A66",
    accent="#0072B2",
    warning="#7A5200",
    error="#A33F00",
    success="#0072B2",
    foreground="#14181C",
    background="#FAFAF7",
    surface="#FAFAF7",
    panel="#ECECE6",
    dark=False,
    variables={
        "lost": "#9A3B00",
        "kept": "#005A8E",
        "unscored": "#6B4700",
        "dimmed": "#4A5A66",
        "cursor": "#BFDDF0",
        "footer-key-foreground": "#005A8E",
    },
)
THEMES = (DARK, LIGHT)
