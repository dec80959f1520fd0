"""One page that shows what was measured: plots to touch, the claims table, and how to get every figure again.

The page is one file without requests to anywhere: data, style, script and plotly's own script stand in it. It is built
from what lies in the folder alone, so equal results give equal pages.
"""

from __future__ import annotations

import html
import json
from importlib import resources
from pathlib import Path

from plotly.offline import get_plotlyjs

from driftformer.errors import InputError
from driftformer.report.payload import build_payload
from driftformer.report.sections import body
from driftformer.storage.files import write_atomically

REPORT = "report.html"


def write_report(out: Path) -> Path:
    """The page of a folder that `driftformer reproduce` filled."""
    try:
        payload = build_payload(out)
        text = body(payload, out)
        data = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"folder {out} holds results that no version of driftformer writes ({type(error).__name__}: {error}); "
            "name another --out and reproduce them again"
        ) from error
    page = _asset("page.html")
    for mark, content in {
        "TITLE": html.escape(payload["title"]),
        "STYLE": _asset("page.css"),
        "BODY": text,
        "DATA": data,
        "PLOTLY": get_plotlyjs().replace("</script", "<\\/script"),
        "SCRIPT": _asset("page.js"),
    }.items():
        page = page.replace(f"<!--{mark}-->", content)
    write_atomically(out / REPORT, page.encode())
    return out / REPORT


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
