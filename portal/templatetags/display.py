"""How values look on a page: icons, times, sizes, bars, navigation. Templates load it.

Everything returned is escaped by `format_html`; nothing here reads rows or the clock of the database.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from django import template
from django.forms import BoundField, CheckboxInput, CheckboxSelectMultiple, RadioSelect, Select, Textarea
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# CSI, then strings such as window titles and hyperlinks, other escapes, other control characters except tab.
_CONTROL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)?"
    r"|\x1b[ -/]*[0-~]?|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
)
_ERASE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[JK]")


@register.simple_tag
def icon(name: str, css: str = "") -> SafeString:
    """A decorative icon of `static/icons.svg`, hidden from screen readers: words stand beside it."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        css,
        static("icons.svg"),
        name,
    )


@register.simple_tag
def when(moment: datetime | None, style: str = "relative", missing: str = "–") -> SafeString | str:
    """A moment: relative ("5 min ago"), with style "clock" the time of day, with "full" the date too.

    The exact one stands in the title.
    """
    if moment is None:
        return missing
    local = timezone.localtime(moment)
    formats = {"clock": "%H:%M", "full": "%Y-%m-%d %H:%M:%S"}
    text = f"{local:{formats[style]}}" if style in formats else relative_words(moment, now=timezone.now())
    return format_html(
        '<time datetime="{}" data-relative="{}" title="{}">{}</time>',
        moment.astimezone(UTC).isoformat(timespec="seconds"),
        style,
        f"{local:%Y-%m-%d %H:%M:%S %Z}",
        text,
    )


@register.simple_tag
def elapsed(start: datetime | None, end: datetime | None = None, missing: str = "–") -> SafeString | str:
    """Length between two moments; with no end it runs on in the browser."""
    if start is None:
        return missing
    words = duration(((end or timezone.now()) - start).total_seconds())
    if end is not None:
        return words
    started = start.astimezone(UTC).isoformat(timespec="seconds")
    return format_html('<span data-running-since="{}">{}</span>', started, words)


def relative_words(moment: datetime, *, now: datetime) -> str:
    """The words of `static/js/times.js` for a page without JavaScript."""
    seconds = (moment - now).total_seconds()
    size = abs(seconds)
    if size < 10:
        return "just now"
    for unit, length, limit in (
        ("s", 1, _MINUTE),
        ("min", _MINUTE, _HOUR),
        ("h", _HOUR, _DAY),
        ("d", _DAY, 60 * _DAY),
        ("months", 30 * _DAY, None),
    ):
        if limit is None or size < limit:
            words = f"{int(size // length)} {unit}"
            return f"{words} ago" if seconds < 0 else f"in {words}"
    raise AssertionError("the last step has no limit")


@register.filter
def duration(seconds: float | None) -> str:
    """Seconds as "42 s", "3 min 20 s", "2 h 5 min" or "3 d 4 h"; a dash for None."""
    if seconds is None:
        return "–"
    whole = max(0, round(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


@register.filter
def binary_size(count: int | None) -> str:
    """Bytes in binary units, as Kubernetes writes them: 1610612736 -> "1.5 GiB"."""
    if count is None:
        return "–"
    size, power = float(count), 0
    while abs(size) >= 1024 and power < len(_BINARY) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.1f}".removesuffix(".0") + f" {_BINARY[power]}"


@register.filter
def cores(milli: int | None) -> str:
    """Thousandths of a CPU core as cores: 1500 -> "1.5"."""
    return "–" if milli is None else f"{milli / 1000:.3f}".rstrip("0").rstrip(".")


@register.filter
def ordinal(number: int) -> str:
    """A place in words for people: 1 -> "1st", 12 -> "12th"."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


@register.filter
def group_digits(number: int) -> str:
    """A large number with thin spaces between thousands: 1000000 -> "1 000 000"."""
    return f"{number:,}".replace(",", "\u202f")


@register.filter
def times(count: int) -> range:
    """`{% for _ in 3|times %}`: repeat without a list in the context."""
    return range(max(0, count))


@register.simple_tag
def bar(segments: Iterable[Mapping[str, Any]], total: float, label: str) -> SafeString:
    """A stacked bar. Each segment has `value` and `tone` ("used", "own", "over", "team-c3" …).

    What goes beyond `total` makes the whole bar longer and a mark shows where `total` is. Widths are SVG
    attributes because the content security policy allows no inline style.
    """
    parts = [(max(0.0, float(part["value"])), str(part["tone"])) for part in segments]
    scale = max(float(total), sum(value for value, _ in parts))
    if scale <= 0:
        scale = 1.0
    rects, left = [], 0.0
    for value, tone in parts:
        width = value / scale * 100
        if width > 0:
            rects.append((f"{left:.2f}", f"{width:.2f}", tone))
        left += width
    mark = float(total) / scale * 100
    return format_html(
        '<svg class="bar" role="img" aria-label="{}" viewBox="0 0 100 8" preserveAspectRatio="none">'
        '<rect class="bar-track" width="100" height="8"></rect>{}{}</svg>',
        label,
        format_html_join("", '<rect x="{}" width="{}" height="8" class="bar-{}"></rect>', rects),
        format_html('<rect x="{}" width="0.8" height="8" class="bar-limit"></rect>', f"{mark:.2f}")
        if mark < 99.9
        else "",
    )


@register.inclusion_tag("_meter.html")
def meter(used: int, total: int, label: str = "", unit: str = "", rest: str = "left") -> dict[str, object]:
    """Use against a limit in words and as a bar; above the limit it says by how much. `rest` names the rest."""
    over = max(0, used - total)
    segments = [{"value": used - over, "tone": "used"}, {"value": over, "tone": "over"}]
    return {
        "used": used,
        "total": total,
        "over": over,
        "left": max(0, total - used),
        "rest": rest,
        "label": label,
        "unit": unit,
        "segments": segments,
    }


@register.inclusion_tag("_nav_item.html", takes_context=True)
def nav(
    context: Mapping[str, Any], url_name: str, text: str, symbol: str, keys: str = ""
) -> dict[str, object]:
    """An entry of the main navigation; none where the page does not exist (yet)."""
    try:
        address = reverse(url_name)
    except NoReverseMatch:
        return {"address": None}
    request = context.get("request")
    path = request.path if request is not None else ""
    is_current = path == address or (address != "/" and path.startswith(address.rstrip("/") + "/"))
    return {"address": address, "text": text, "symbol": symbol, "keys": keys, "is_current": is_current}


@register.simple_tag(takes_context=True)
def with_query(context: Mapping[str, Any], **changes: object) -> str:
    """The current query string with some parameters changed; None or "" removes one."""
    query = context["request"].GET.copy()
    for name, value in changes.items():
        if value is None or value == "":
            query.pop(name, None)
        else:
            query[name] = str(value)
    return "?" + query.urlencode() if query else "?"


@register.filter
def control(field: BoundField) -> SafeString:
    """A form field's widget with the classes of the kit; forms stay free of looks."""
    widget = field.field.widget
    if isinstance(widget, RadioSelect | CheckboxSelectMultiple):
        return field.as_widget()
    css = "form-control"
    if isinstance(widget, Select):
        css = "form-select"
    elif isinstance(widget, CheckboxInput):
        css = "form-check-input"
    elif isinstance(widget, Textarea):
        css += " mono"
    return field.as_widget(attrs={"class": f"{css} {widget.attrs.get('class', '')}".strip()})


@register.filter
def runs(cells: Iterable[Any]) -> list[tuple[Any, int]]:
    """Equal neighbours together with their number, so that the GPUs of one job are drawn as one piece."""
    return [(cell, sum(1 for _ in group)) for cell, group in groupby(cells)]


@register.filter
def clean_line(raw: str) -> str:
    """A log line as plain text by the rules of `static/js/ansi.js` (RW-045, RW-047).

    A bare carriage return replaces the line so far, escape sequences and control characters vanish.
    """
    shown = ""
    for part in raw.rstrip("\r\n").split("\r"):
        text = _CONTROL.sub("", part)
        if text or _ERASE.search(part):
            shown = text
    return shown
