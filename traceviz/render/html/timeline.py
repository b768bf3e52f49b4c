"""The timeline of a page: its controls, its data, and its lanes as a table for readers who cannot see the drawing.

Scripts draw it (``assets/timeline*.js``). Without scripts the page shows the table of lanes, and hides the controls.
"""

from __future__ import annotations

from markupsafe import Markup

from traceviz.core.units import format_value
from traceviz.render.html.components.element import element, joined, shown
from traceviz.report.pictures.packed import packed
from traceviz.report.pictures.values import Detail, Lane, Pictures, Timeline

_CONTROLS = (
    (("left", "◀", "Pan left"), ("right", "▶", "Pan right")),
    (("in", "+", "Zoom in"), ("out", "\N{MINUS SIGN}", "Zoom out"), ("fit", "Fit", "Zoom to the selection")),
    (("whole", "Whole", "Show the whole timeline"), ("mark", "Select view", "Select the time that is in view")),
    (("previous", "‹ Span", "Previous span of the lane"), ("following", "Span ›", "Next span of the lane")),
)
"""Groups of buttons: action (``TIMELINE_BUTTONS`` of timeline.js), text and name of each."""
_KEYS = (
    ("A D, ← →", "pan"),
    ("W S, + −", "zoom in and out"),
    ("F, Enter", "zoom to the selection"),
    ("Home", "show the whole timeline"),
    ("[ ]", "previous and next span of the lane"),
    ("↑ ↓", "span in the lane above and below"),
    ("M", "select the time in view"),
    ("/, then N and Shift+N", "search by name, then next and previous match"),
    ("Esc", "clear the selection, then the search"),
    ("?", "this help"),
    ("Wheel", "scrolls, as everywhere in the page; with Ctrl or ⌘ it zooms at the pointer, with Shift it pans"),
    ("Drag", "pans; with Shift it selects a stretch of time"),
    ("Click", "selects a span; twice: zooms to it"),
    ("Touch", "one finger pans, two fingers zoom, a tap selects"),
    ("Colours", "press one of the legend to see its spans alone"),
)
_HELP = "Ctrl + wheel zooms, drag pans, Shift + drag selects time; all keys and gestures"
_MOST_DETAILS = 12
_NAME = "Timeline. Arrow keys pan, W and S zoom, brackets step through spans, question mark lists all keys."


def timeline_parts(pictures: Pictures) -> Markup:
    """Draw the timeline of ``pictures``; empty if they have none."""
    timeline = pictures.timeline
    if timeline is None:
        return Markup()
    texts = packed(timeline, pictures.places)
    data = (
        # Neither text can end its element (see packed).
        element("script", Markup(texts.header), type="application/json", id="tv-timeline"),  # noqa: S704
        element("script", Markup(texts.data), type="application/octet-stream", id="tv-timeline-data"),  # noqa: S704
    )
    box = element("div", class_="tv-timeline-box", tabindex=0, role="application", aria_label=_NAME)
    frame = element("div", box, class_="tv-timeline-frame", hidden=True)
    return element(
        "div",
        _about(timeline),
        _bar(),
        element("ul", class_="tv-timeline-legend", aria_label="Colours"),
        element("div", frame, element("div", class_="tv-timeline-panel"), class_="tv-timeline-body"),
        element("p", class_="tv-timeline-copied tv-timeline-matches", role="status"),
        element("p", _COARSE, class_="tv-timeline-coarse", hidden=True),
        element("p", class_="tv-timeline-live tv-unseen", aria_live="polite"),
        _help(),
        _lanes(timeline),
        *data,
        class_="tv-timeline",
        id_="tv-timeline-view",
    )


_COARSE = (
    "Striped lanes: the page has no room for the single events of this stretch, and shows what takes most of the time. "
    "With --timeline-events the page holds more."
)


def _about(timeline: Timeline) -> Markup:
    length = format_value(timeline.end_ns - timeline.start_ns, "ns")
    everything = f"{_counted(timeline.events, 'event')} in {_counted(len(timeline.lanes), 'lane')} over {length}."
    if timeline.kept >= timeline.events:
        return element("p", everything, class_="tv-timeline-about")
    kept = (
        f" {_counted(timeline.kept, 'event')} of them are in this page; elsewhere it shows what takes most of the time."
    )
    places = joined(_detail(detail) for detail in timeline.details[:_MOST_DETAILS])
    every = joined((" Every event is there in: ", places)) if places else ""
    return element("p", everything, kept, every, class_="tv-timeline-about")


def _detail(detail: Detail) -> Markup:
    """Draw a button that shows the interval, and its reason if there is no script."""
    button = element(
        "button",
        shown(detail.reason),
        type_="button",
        class_="tv-show tv-timeline-link",
        hidden=True,
        data_start=detail.start_ns,
        data_end=detail.end_ns,
        data_lane="",
    )
    return element("span", button, element("noscript", shown(detail.reason)), " ")


def _bar() -> Markup:
    groups = [
        element("span", *(_button(*control) for control in group), class_="tv-timeline-buttons") for group in _CONTROLS
    ]
    search = element(
        "span",
        element(
            "input", class_="tv-timeline-search", type_="search", placeholder="Search names", aria_label="Search names"
        ),
        _button("before", "↑", "Previous match"),
        _button("after", "↓", "Next match"),
        class_="tv-timeline-buttons",
        role="search",
    )
    matches = element("span", class_="tv-timeline-matches", role="status")
    copy = element(
        "span",
        _button("copy", "Copy command", "Copy the command that prints the figures of this time"),
        class_="tv-timeline-buttons tv-timeline-copy",
    )
    helping = element("span", _button("help", "?", "Keys and gestures"), class_="tv-timeline-buttons")
    return element("div", *groups, search, matches, copy, helping, class_="tv-timeline-bar", hidden=True)


def _button(act: str, text: str, name: str) -> Markup:
    return element("button", text, type_="button", data_act=act, title=name, aria_label=name)


def _help() -> Markup:
    keys = joined(joined((element("dt", key), element("dd", what))) for key, what in _KEYS)
    return element("details", element("summary", _HELP), element("dl", keys), class_="tv-timeline-help")


def _lanes(timeline: Timeline) -> Markup:
    """Draw the content as a table: for each lane its events and the time that they cover."""
    heads = (("Group", False), ("Lane", False), ("Events", True), ("Time covered", True), ("Share", True))
    head = element(
        "tr", *(element("th", text, scope="col", class_=("tv-number" if number else None)) for text, number in heads)
    )
    length = max(timeline.end_ns - timeline.start_ns, 1)
    rows = joined(_lane(lane, length, is_whole=timeline.kept >= timeline.events) for lane in timeline.lanes)
    table = element(
        "table",
        element("caption", "Lanes of the timeline"),
        element("thead", head),
        element("tbody", rows),
        class_="tv-timeline-table",
    )
    scroll = element("div", table, class_="tv-scroll", tabindex=0, role="region", aria_label="Lanes of the timeline")
    return element("details", element("summary", "Lanes as a table"), scroll, class_="tv-timeline-text")


def _lane(lane: Lane, length: int, *, is_whole: bool) -> Markup:
    events = sum(row.starts.size for row in lane.rows)
    first = next(iter(lane.rows), None)
    cells = int(lane.levels[0][0].covered.sum()) if lane.levels and lane.levels[0] else 0
    if is_whole or not cells or first is None:
        covered = int(first.durations.sum()) if first is not None else 0
    else:
        covered = round(cells / 255 * lane.levels[0][0].width_ns)
    texts = (shown(lane.label), format_value(events, "count"), format_value(covered, "ns"))
    share = format_value(min(covered / length, 1), "ratio")
    return element(
        "tr",
        element("td", shown(lane.group)),
        element("th", texts[0], scope="row"),
        *(element("td", text, class_="tv-number") for text in (*texts[1:], share)),
    )


def _counted(number: int, noun: str) -> str:
    return f"{format_value(number, 'count')} {noun}{'' if number == 1 else 's'}"
