"""Writes the generated pages of the reference and llms.txt: python scripts/reference_pages.py."""

from __future__ import annotations

from pathlib import Path

from llms import llms_text
from reference_combines import combines_page
from reference_commands import commands_page
from reference_metrics import metrics_page
from reference_settings import settings_page

ROOT = Path(__file__).resolve().parents[1]


def pages() -> dict[str, str]:
    """Return the generated files, by their path in the repository."""
    found = reference_pages()
    return found | {"docs/llms.txt": llms_text(ROOT, found)}


def reference_pages() -> dict[str, str]:
    return {
        "docs/reference/commands.md": commands_page(),
        "docs/reference/metrics.md": metrics_page(),
        "docs/reference/settings.md": settings_page(),
        "docs/reference/what-combines.md": combines_page(),
    }


def main() -> None:
    """Write the files that differ from what is there, and name them."""
    for name, text in pages().items():
        file = ROOT / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
