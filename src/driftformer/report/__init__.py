"""One page that shows what was measured: interactive plots, the table of claims, and how to reproduce every figure.

The page is a single file that requests nothing: data, style, script and plotly's own script are embedded. It is built
from the content of the folder alone, so equal results give equal pages.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from driftformer.errors import InputError, brought_by
from driftformer.report import sections
from driftformer.report.content import Content
from driftformer.report.payload import build_payload
from driftformer.storage.files import write_atomically

with brought_by("report"):
    from plotly.offline import get_plotlyjs

REPORT = "report.html"


def write_report(out: Path) -> Path:
    """The page of a folder that `driftformer reproduce` filled."""
    try:
        content = Content(out)
        data = json.dumps(build_payload(content), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        body = sections.body(content, out)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"folder {out} holds results that no version of driftformer writes ({type(error).__name__}: {error}); "
            "name another --out and reproduce them again"
        ) from error
    page = _asset("page.html")
    for mark, content in {
        "STYLE": _asset("page.css"),
        "BODY": body,
        "DATA": data,
        "PLOTLY": get_plotlyjs().replace("</script", "<\\/script"),
        "SCRIPT": _asset("page.js"),
    }.items():
        page = page.replace(f"<!--{mark}-->", content)
    write_atomically(out / REPORT, page.encode())
    return out / REPORT


def headlines(out: Path) -> list[tuple[str, str]]:
    """A title and a line of numbers for each of the paper's worlds in a folder."""
    return sections.headlines(Content(out))


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
