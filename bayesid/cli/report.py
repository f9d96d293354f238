"""bayesid report: a readable page of any result document."""

from __future__ import annotations


def add_arguments(parser):
    parser.add_argument("result", metavar="RESULT", help="result folder, or its result.json")
    parser.add_argument("--out", required=True, metavar="FILE", help="HTML file to write")


def run(args):
    from pathlib import Path

    from bayesid.errors import ResultError
    from bayesid.report.document import document_page
    from bayesid.results import Estimate, read_result

    document = read_result(args.result)
    saved = Path(args.result) / "estimate.json"
    estimate = Estimate.load(saved) if saved.is_file() else None
    try:
        Path(args.out).write_text(document_page(document, estimate), encoding="utf-8")
    except OSError as error:
        raise ResultError(f"{args.out}: cannot be written: {error.strerror}") from error
    print(f"wrote {args.out}")
    return 0
