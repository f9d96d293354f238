"""bayesid report: a readable page of any result document."""

from __future__ import annotations

from bayesid.cli.options import path_name


def add_arguments(parser):
    parser.add_argument("result", metavar="RESULT", help="result folder, or its result.json")
    parser.add_argument("--out", required=True, type=path_name, metavar="FILE", help="HTML file to write")


def run(args):
    from pathlib import Path

    from bayesid.errors import ResultError
    from bayesid.report.document import document_page
    from bayesid.results import Estimate, read_result

    target = Path(args.out)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ResultError(f"--out {args.out}: name a file that ends in .html")
    document = read_result(args.result)
    source = Path(args.result)
    saved = (source if source.is_dir() else source.parent) / "estimate.json"
    estimate = Estimate.load(saved) if saved.is_file() else None
    try:
        page = document_page(document, estimate)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ResultError(f"{args.result}: a damaged result: {_reason(error)}; run the command that made it again") from error
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ResultError(f"{args.out}: cannot be written: {error.strerror}") from error
    print(f"wrote {args.out}")
    return 0


def _reason(error) -> str:
    return f"it has no entry {error}" if isinstance(error, KeyError) else str(error)
